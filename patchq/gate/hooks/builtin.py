"""The hooks that come with patchq: `hooks/` of the repository, which a wheel carries as `scripts/`.

They are programs of their own, so that `run` can name one and a person can try one by hand.  The
gate's judgements are pure functions as well, which the pipeline calls in its own process: starting
one for each response would cost more than landing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from patchq.gate.report.secrecy import directory, gate

PREFIX = "patchq:"  # the prefix of a shipped hook's name in `run`
GATE = "pre-apply"
PUBLISH, NOTIFY = "publish", "notify"
CI = "ci"  # runs nothing of the batch, and needs what the daemon may use

# Name -> the stage that the hook is for, and what it does.
SUMMARIES = {
    "pre-apply": "pre-apply: the default gate: no-secrets, protected-paths, size-limits",
    "no-secrets": "pre-apply: refuse private keys, live tokens and passwords",
    "protected-paths": "pre-apply: refuse protected paths (more by PATCHQ_PROTECTED)",
    "size-limits": "pre-apply: refuse outsized changes (PATCHQ_MAX_FILES, _LINES, _BYTES)",
    "syntax": "pre-commit: refuse files that their language's own program cannot read",
    "run-tests": "pre-commit: run the tests (PATCHQ_TEST_COMMAND, else what the tree shows)",
    "ruff": "pre-commit: check Python by ruff; `fixes: true` fixes and formats",
    "pre-commit-framework": "pre-commit: run .pre-commit-config.yaml by prek or pre-commit",
    "ci": "pre-commit: wait for the checks of the forge's own CI (`checks`)",
    "publish": "post-commit: keep proposals as branches of PATCHQ_REMOTE (default: origin)",
    "notify": "post-*: tell PATCHQ_NOTIFY_COMMAND or PATCHQ_NOTIFY_URL of each event",
}

# The scripts of `hooks/git/`, by git's own names.
GIT_SUMMARIES = {
    "applypatch-msg": "git am: the message holds no secret",
    "pre-applypatch": "git am: the change passes the queue's checks and the configured hooks",
    "pre-push": "git push: so does what goes to a protected branch; no unreviewed proposal does",
    "update": "a push to this repository: the same",
    "pre-receive": "a push to refs/for/BRANCH: it comes alone, and leaves no object behind",
    "proc-receive": "a push to refs/for/BRANCH: what it brings becomes a change in the queue",
    "post-merge": "git merge, git pull: a proposal merged by hand counts as accepted at once",
    "post-rewrite": "git rebase, git commit --amend: the same",
}
# Hooks that git starts in the git directory, for what is pushed to it.
RECEIVING = frozenset({"update", "pre-receive", "proc-receive"})

_JUDGES = {
    "pre-apply": "gate",
    "no-secrets": "secrets",
    "protected-paths": "protected_paths",
    "size-limits": "size_limits",
}

Judge = Callable[[Mapping[str, Any]], list[str]]


def name_in(run: str) -> str | None:
    """The name of the shipped hook that a `run` line asks for; None if it asks for none."""
    return run.removeprefix(PREFIX).strip() if run.startswith(PREFIX) else None


def path(name: str) -> Path | None:
    """The script, an executable file; None if patchq ships none of that name."""
    return directory() / name if name in SUMMARIES else None


def misfit(name: str, stage: str) -> str | None:
    """Return the reason why there is no such hook for the stage: "expected …, got …"."""
    if name not in SUMMARIES:
        return f"expected a shipped hook ({', '.join(SUMMARIES)}), got `{PREFIX}{name}`"
    own = SUMMARIES[name].partition(":")[0]
    if fnmatchcase(stage, "pre-*" if name in _JUDGES else own):
        return None
    return (
        f"expected a hook that sees something at {stage}, got `{PREFIX}{name}`, which is for {own}"
    )


def git_path(name: str) -> Path | None:
    """The script for one of git's own hooks; None if patchq ships none of that name."""
    return directory() / "git" / name if name in GIT_SUMMARIES else None


def judge(name: str, environ: Mapping[str, str] = os.environ) -> Judge | None:
    """A gate hook as a function of a plan (`patchq.plan/1`, whose diff has to be whole); None for
    every other hook.

    It returns the lines of the refusal, empty for a pass; one that begins with `edit.secret:` says
    that the plan's text must be quoted nowhere.  `environ` is what the hook's `env` lets through.
    It raises `ValueError` if a variable there cannot be used.
    """
    if name not in _JUDGES:
        return None
    judged = getattr(gate(), _JUDGES[name])
    return lambda plan: judged(plan, environ)
