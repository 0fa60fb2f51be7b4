"""The table of verbs."""

from __future__ import annotations

# Each verb, which is a module, and what it is for.
VERBS = {
    "setup": "have agents' clients find patchq here, and prove that each can start it",
    "init": "make the queue and a commented .patchq.yaml; safe to repeat",
    "watch": "serve the queue until stopped",
    "stop": "stop the daemon after the change in hand",
    "service": "serve this repository by systemd, or no longer",
    "run": "work off what waits, then exit (for cron and CI)",
    "submit": "drop a response into the queue; prints its id",
    "wait": "wait for the verdict on a change, or for a later state of it",
    "check": "dry run: plan, diff and verdict of a response",
    "apply": "take one response through the whole pipeline now",
    "status": "list what waits for you, for agents, and what is held",
    "log": "list the changes, newest verdict first",
    "show": "show a change: its page, its diff, or its report as JSON",
    "events": "tell of every change of state, as it comes or since an event",
    "review": "look at what waits, and decide, on a page in the browser",
    "accept": "land a proposal on its target",
    "train": "land what was accepted and waits; the daemon does so by itself",
    "send-back": "ask for changes of a proposal, in words that its agent gets",
    "comment": "reply to a comment on a proposal, or resolve it",
    "discard": "take a proposal away; its commit is kept, and `log` tells it",
    "revert": "take back a change that landed",
    "retry": "decide again on a response, on the branches as they are now",
    "prompt": "print the prompt that asks a model for edits of files",
    "ask": "ask the configured model for edits of files, and put them through the queue",
    "anchors": "print ranked anchor candidates of a file, as JSON",
    "formats": "list the formats, or print one's instructions for a model",
    "stats": "count verdicts, how quotes matched, and reasons",
    "hooks": "list the shipped hooks, put them to work, or take them away again",
    "instructions": "print the text that teaches an agent to feed patchq and to read its report",
    "worker": "decide on what a cluster's machines submit, and land it on the shared remote",
    "cluster": "the database that carries the queue of many machines",
    "forge": "keep proposals and the pull requests of a forge in step",
    "mcp": "serve the queue as tools, to agents that speak MCP",
    "config": "check the configuration, or print a sample or its JSON schema",
    "completion": "print what a shell needs to complete patchq's words",
    "doctor": "check repository, queue and system; each finding with its cure",
    "backup": "write a copy of the queue's store, to put back as .patchq/store.db",
    "fsck": "check the queue against the repository; --repair rebuilds what can be derived",
}

# The verbs by what one is about to do; the others are listed behind them.
GROUPS = {
    "every day": ("watch", "status", "show", "accept", "send-back", "review"),
    "begin": ("setup", "init", "doctor", "config", "hooks", "completion"),
    "serve": ("run", "stop", "service"),
    "hand in": ("submit", "wait", "check", "apply", "instructions", "mcp"),
    "look": ("log", "events", "stats"),
    "decide": ("discard", "comment", "retry", "revert"),
    "ask a model": ("prompt", "ask", "anchors", "formats"),
}
