"""The configuration's hooks, each as a command, an environment and a way to read its end.

They come from the configuration that the daemon loaded, from the shipped hooks and from the
repository's own hooks directory, never from the batch."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, json
from msgspec.structs import replace

from patchq import __version__
from patchq.gate.config.policy import matcher
from patchq.gate.config.schema import Config, Hook, Stage
from patchq.gate.errors import HookFault
from patchq.gate.hooks import builtin
from patchq.gate.report.schema import EVENT_KINDS, LANDED, EventKind
from patchq.gate.report.secrecy import directory

SHELL = "/bin/sh"
_KEPT = ("PATH", "LANG", "TZ")
# Directories that the shipped hooks are made of.
_PARTS = (os.path.dirname(sys.executable), str(directory()))
# The file of a candidate's private git directory that holds its commit's message.
MESSAGE = "PATCHQ_MSG"
_SCRIPTS = frozenset({".sh", ".bash", ".py", ".pl", ".rb", ".js", ".mjs", ".ts"})
_SPECIAL = re.compile(r"[*?\[\]\\! #]")
# The repository's own: name -> stage, and whether it may change something (the message).
_GIT_HOOKS: Mapping[str, tuple[Stage, bool]] = {
    "applypatch-msg": ("pre-commit", True),
    "pre-applypatch": ("pre-commit", False),
    "post-applypatch": ("post-commit", False),
}


class Step(Struct, frozen=True):
    """One hook, ready to be started."""

    hook: Hook
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Its part of the daemon's environment."""
    digest: str
    """Of the hook and its environment: a pass under another configuration is none."""
    judge: builtin.Judge | None = None
    """A function to ask in this process instead of starting one."""
    git: bool = False
    """True for the repository's own: HEAD is then the commit before, as in `git am`."""
    parts: tuple[str, ...] = ()
    """Directories that it is made of, besides."""
    hears: frozenset[EventKind] = frozenset()
    """The kinds of events that it follows."""
    in_step: bool = False
    """True if it runs whenever the report changes, to keep something in step with it."""
    trusted: bool = False
    """True if it runs nothing of the batch: it may use what the daemon may."""

    def wants(self, paths: Iterable[str]) -> bool:
        """True if the hook is for one of the changed paths."""
        return not self.hook.files or any(map(matcher(self.hook.files), paths))


class Steps(Struct, frozen=True):
    """All hooks of a configuration by their stages; `fixes` run before `pre_commit`."""

    pre_apply: tuple[Step, ...] = ()
    fixes: tuple[Step, ...] = ()
    pre_commit: tuple[Step, ...] = ()
    following: tuple[Step, ...] = ()
    """The hooks that follow verdicts."""

    @property
    def joined(self) -> tuple[Step, ...]:
        """The hooks that check the joined tree of a train."""
        return tuple(step for step in self.pre_commit if not step.hook.each)

    @property
    def alone(self) -> Steps:
        """The hooks that judge each member of a train by itself."""
        return replace(self, pre_commit=tuple(step for step in self.pre_commit if step.hook.each))

    @property
    def judges(self) -> Steps:
        """The hooks that are functions of this process, and cost nothing."""
        return Steps(pre_apply=tuple(step for step in self.pre_apply if step.judge is not None))

    @property
    def before(self) -> bool:
        """True if a hook is to be asked before a commit lands."""
        return bool(self.pre_apply or self.fixes or self.pre_commit)

    @property
    def parallel(self) -> bool:
        """True if a process is started for that."""
        return any(step.judge is None for step in (*self.pre_apply, *self.fixes, *self.pre_commit))


def steps(config: Config, git_hooks: Path | None) -> Steps:
    """The hooks of the configuration, and the repository's own in the directory `git_hooks`.
    Raises `HookFault` for a shipped hook that there is not."""
    own = [] if git_hooks is None else _git_steps(git_hooks)
    every = [*(_step(hook, config) for hook in config.hooks), *own]

    def of(stage: str, fixes: bool = False) -> tuple[Step, ...]:
        return tuple(step for step in every if (step.hook.stage, step.hook.fixes) == (stage, fixes))

    return Steps(
        pre_apply=of("pre-apply"),
        fixes=of("pre-commit", fixes=True),
        pre_commit=of("pre-commit"),
        following=of("post-commit") + of("post-reject"),
    )


def _step(hook: Hook, config: Config) -> Step:
    env, name = environment(hook.env), builtin.name_in(hook.run)
    if name == builtin.CI:
        sections = {"forge": config.forge, "landing": config.landing} if config.has_forge else {}
        env["PATCHQ_CONFIG"] = json.encode(sections).decode()
        env["PATCHQ_CHECKS"] = json.encode(hook.checks).decode()
    argv, judge = _command(hook, env)
    text = repr(replace(hook, timeout_seconds=0))
    digest = sha256(f"{__version__}\0{text}\0{sorted(env.items())}".encode(errors="replace"))
    return Step(
        hook,
        argv,
        env,
        digest.hexdigest(),
        judge=judge if hook.stage == "pre-apply" else None,
        parts=parts(hook),
        hears=_hears(hook, name),
        in_step=name == builtin.PUBLISH,
        trusted=name == builtin.CI,
    )


_LANDED: frozenset[EventKind] = frozenset(kind for kind in EVENT_KINDS if kind in LANDED)
_PROPOSED: frozenset[EventKind] = frozenset({"proposed"})
_REFUSED: frozenset[EventKind] = frozenset({"refused"})


def _hears(hook: Hook, name: str | None) -> frozenset[EventKind]:
    every = frozenset(EVENT_KINDS)
    if hook.events:
        return every if "all" in hook.events else every.intersection(hook.events)
    if hook.stage != "post-commit":
        return _REFUSED if hook.stage == "post-reject" else frozenset()
    if name == builtin.NOTIFY:
        return every - _REFUSED
    return _PROPOSED if name == builtin.PUBLISH else _PROPOSED | _LANDED


def parts(hook: Hook) -> tuple[str, ...]:
    """The directories that a hook is made of, beside what its PATH names."""
    return _PARTS if builtin.name_in(hook.run) else ()


def _command(hook: Hook, env: Mapping[str, str]) -> tuple[tuple[str, ...], builtin.Judge | None]:
    name = builtin.name_in(hook.run)
    if name is None:
        return (SHELL, "-c", hook.run), None
    flaw = builtin.misfit(name, hook.stage)
    if flaw:
        raise HookFault(f"the hook {hook.id} cannot be used: {flaw}", "see `patchq hooks list`")
    # By the Python that runs patchq, whichever is on PATH.
    return (sys.executable, str(builtin.path(name))), builtin.judge(name, env)


def _git_steps(hooks: Path) -> list[Step]:
    """The repository's own hooks for applied patches, those that git would run."""
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


def environment(names: Sequence[str]) -> dict[str, str]:
    """Return a hook's part of the daemon's environment: little, and the variables `names`."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in (*_KEPT, *names) if name in os.environ},
    }


def shell_words(line: str) -> list[str]:
    """The words of a shell line; none where it is not plain to see."""
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
