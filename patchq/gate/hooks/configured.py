"""The configuration's hooks, each as a command and an environment; the hooks that patchq ships.

They come from the configuration that the daemon loaded, from the shipped hooks and from the
repository's own hooks directory, never from the batch.

A shipped hook is a program of its own (in `hooks/` of the repository, which a wheel carries as
`scripts/`), so that `run` can name it and a person can try it by hand.  The gate's judgements are
functions as well, which the pipeline calls: starting a program for each response would cost more
than landing it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from patchq import __version__
from patchq.gate.config.policy import matcher
from patchq.gate.config.schema import Config, Hook, HookStage
from patchq.gate.errors import HookFault
from patchq.gate.report.schema import EVENT_KINDS, LANDED, EventKind
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

SHELL = "/bin/sh"
_KEPT = ("PATH", "LANG", "TZ")
# Directories that the shipped hooks are made of.
_PARTS = (os.path.dirname(sys.executable), str(directory()))
# The file of a candidate's private git directory that holds its commit's message.
MESSAGE = "PATCHQ_MSG"
_SCRIPTS = frozenset({".sh", ".bash", ".py", ".pl", ".rb", ".js", ".mjs", ".ts"})
_SPECIAL = re.compile(r"[*?\[\]\\! #]")
# The repository's own: name -> stage, and whether it may change something (the message).
_GIT_HOOKS: Mapping[str, tuple[HookStage, bool]] = {
    "applypatch-msg": ("pre-commit", True),
    "pre-applypatch": ("pre-commit", False),
    "post-applypatch": ("post-commit", False),
}


class Step(Struct, frozen=True):
    """One hook, ready to be started.

    The `digest` is of the hook and its environment: a pass under another configuration is none.
    `judge` is a function to ask in this process instead.  `git` says that the hook is the
    repository's own, for which HEAD is the commit before, as in `git am`.  `hears` are the kinds
    of events that it follows; with `in_step` it runs whenever the report changes.  A `trusted` one
    runs nothing of the batch, and may use what the daemon may.
    """

    hook: Hook
    argv: tuple[str, ...]
    env: Mapping[str, str]
    digest: str
    judge: Judge | None = None
    git: bool = False
    parts: tuple[str, ...] = ()
    hears: frozenset[EventKind] = frozenset()
    in_step: bool = False
    trusted: bool = False

    @property
    def sees_tree(self) -> bool:
        """True if it runs in the candidate's work tree."""
        return self.hook.stage == "pre-commit" and not self.trusted

    def wants(self, paths: Iterable[str]) -> bool:
        return not self.hook.files or any(map(matcher(self.hook.files), paths))


class Steps(Struct, frozen=True):
    """All hooks of a configuration by their stages; `fixes` run before `pre_commit`."""

    pre_apply: tuple[Step, ...] = ()
    fixes: tuple[Step, ...] = ()
    pre_commit: tuple[Step, ...] = ()
    following: tuple[Step, ...] = ()

    @property
    def joined(self) -> tuple[Step, ...]:
        """The hooks that check the joined tree of a train."""
        return tuple(step for step in self.pre_commit if not step.hook.each)

    @property
    def without_joined(self) -> Steps:
        """The hooks without those that check the joined tree of a train."""
        return replace(self, pre_commit=tuple(step for step in self.pre_commit if step.hook.each))

    @property
    def judges(self) -> Steps:
        return Steps(pre_apply=tuple(step for step in self.pre_apply if step.judge is not None))

    @property
    def before(self) -> bool:
        return bool(self.pre_apply or self.fixes or self.pre_commit)

    @property
    def parallel(self) -> bool:
        """True if a process is started for that."""
        return any(step.judge is None for step in (*self.pre_apply, *self.fixes, *self.pre_commit))


def steps(config: Config, git_hooks: Path | None) -> Steps:
    """Return the hooks of the configuration, and the repository's own in the directory `git_hooks`.
    Raises `HookFault` for a shipped hook that there is not."""
    own = [] if git_hooks is None else _git_steps(git_hooks)
    every = [*(_step(hook, config) for hook in config.hooks), *own]

    def of(stage: HookStage, fixes: bool = False) -> tuple[Step, ...]:
        return tuple(step for step in every if (step.hook.stage, step.hook.fixes) == (stage, fixes))

    return Steps(
        pre_apply=of("pre-apply"),
        fixes=of("pre-commit", fixes=True),
        pre_commit=of("pre-commit"),
        following=of("post-commit") + of("post-reject"),
    )


def _step(hook: Hook, config: Config) -> Step:
    env, name = environment(hook.env), name_in(hook.run)
    argv: tuple[str, ...] = (SHELL, "-c", hook.run)
    if name is not None:
        if flaw := misfit(name, hook.stage):
            why = f"the hook {hook.id} cannot be used: {flaw}"
            raise HookFault(why, "see `patchq hooks list`")
        # By the Python that runs patchq, whichever is on PATH.
        argv = (sys.executable, str(script(name)))
    if name == CI:
        sections = {"forge": config.forge, "landing": config.landing} if config.has_forge else {}
        env["PATCHQ_CONFIG"] = json.encode(sections).decode()
        env["PATCHQ_CHECKS"] = json.encode(hook.checks).decode()
    text = repr(replace(hook, timeout_seconds=0))
    digest = sha256(f"{__version__}\0{text}\0{sorted(env.items())}".encode(errors="replace"))
    return Step(
        hook,
        argv,
        env,
        digest.hexdigest(),
        judge=judge(name, env) if name and hook.stage == "pre-apply" else None,
        parts=parts(hook),
        hears=_hears(hook, name),
        in_step=name == PUBLISH,
        trusted=name == CI,
    )


_LANDED: frozenset[EventKind] = frozenset(kind for kind in EVENT_KINDS if kind in LANDED)
_PROPOSED: frozenset[EventKind] = frozenset({"proposed"})
_REFUSED: frozenset[EventKind] = frozenset({"refused"})


def _hears(hook: Hook, name: str | None) -> frozenset[EventKind]:
    every = frozenset(EVENT_KINDS)
    if hook.events:
        return every if "all" in hook.events else every.intersection(hook.events)
    if hook.stage == "post-reject":
        return _REFUSED
    if hook.stage != "post-commit":
        return frozenset()
    by_name = {NOTIFY: every - _REFUSED, PUBLISH: _PROPOSED}
    return by_name.get(name or "", _PROPOSED | _LANDED)


def parts(hook: Hook) -> tuple[str, ...]:
    """Return the directories that a hook is made of, beside what its PATH names."""
    return _PARTS if name_in(hook.run) else ()


def _git_steps(hooks: Path) -> list[Step]:
    """Return the repository's own hooks for applied patches, those that git would run."""
    files = {name: hooks / name for name in _GIT_HOOKS}
    return [
        Step(
            Hook(id=name, stage=stage, run=str(file), fixes=fixes, each=True, cache=not fixes),
            (str(file), f".git/{MESSAGE}") if fixes else (str(file),),
            environment(()),
            sha256(file.read_bytes()).hexdigest(),
            git=True,
            parts=(str(hooks), *_PARTS),
            hears=_LANDED if stage == "post-commit" else frozenset(),
        )
        for (name, file), (stage, fixes) in zip(files.items(), _GIT_HOOKS.values(), strict=True)
        if file.is_file() and os.access(file, os.X_OK)
    ]


def name_in(run: str) -> str | None:
    return run.removeprefix(PREFIX).strip() if run.startswith(PREFIX) else None


def script(name: str) -> Path | None:
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


def git_script(name: str) -> Path | None:
    """Return the script for one of git's own hooks, or None."""
    return directory() / "git" / name if name in GIT_SUMMARIES else None


def judge(name: str, environ: Mapping[str, str] = os.environ) -> Judge | None:
    """Return a gate hook as a function of a plan; None for other hooks.

    The plan is a `patchq.plan/1`, whose diff has to be whole.  The function returns the lines of
    the refusal, empty for a pass; one that begins with `edit.secret:` says that the plan's text
    must be quoted nowhere.  `environ` is what the hook's `env` lets through.  Raises `ValueError`
    if a variable there cannot be used.
    """
    if name not in _JUDGES:
        return None
    judged = getattr(gate(), _JUDGES[name])
    return lambda plan: judged(plan, environ)


def environment(names: Sequence[str]) -> dict[str, str]:
    """Return a hook's part of the daemon's environment: little, and the variables `names`."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in (*_KEPT, *names) if name in os.environ},
    }


def shell_words(line: str) -> list[str]:
    """Return the words of a shell line, or none if it is unclear."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def paths_named(config: Config) -> tuple[str, ...]:
    """Patterns of the files of the tree that the hooks' lines name: who changes one of them changes
    what a hook does, so auto mode does not land that unseen."""
    named = set()
    for hook in config.hooks:
        words = shell_words(hook.run)
        for word in words:
            name = word.removeprefix("./")
            script = (word is words[0] and "/" in word) or Path(word).suffix in _SCRIPTS
            if script and not name.startswith(("/", "-", "../")) and name.isprintable():
                named.add("/" + _SPECIAL.sub(r"\\\g<0>", name))
    return tuple(sorted(named))
