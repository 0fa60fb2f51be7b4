"""What the configuration's hooks come to: a command, an environment and what to make of its end.

Everything here is taken from the configuration that the daemon loaded, from the shipped hooks and
from the repository's own hooks directory, never from the batch.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from patchq import __version__
from patchq.config.policy import matcher
from patchq.config.schema import Config, Hook
from patchq.hooks import shipped
from patchq.hooks.running import HookFault
from patchq.hooks.warm import MESSAGE

SHELL = "/bin/sh"
_KEPT = ("PATH", "LANG", "TZ")
GIT_SECONDS = 600.0
_SCRIPTS = frozenset({".sh", ".bash", ".py", ".pl", ".rb", ".js", ".mjs", ".ts"})
_SPECIAL = re.compile(r"[*?\[\]\\! #]")
MESSAGE_HOOK, TREE_HOOK, TOLD_HOOK = "applypatch-msg", "pre-applypatch", "post-applypatch"


@dataclass(frozen=True, slots=True)
class Step:
    """One hook, ready to be started."""

    id: str
    stage: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """What it gets of the daemon's environment."""
    timeout: float
    network: bool
    cares: Callable[[str], bool]
    """Whether a changed path is one that the hook is for."""
    digest: str
    """Of everything above: a pass under another configuration is none."""
    fixes: bool = False
    cache: bool = True
    judge: shipped.Judge | None = None
    """What to ask in this process instead of starting one."""
    git: bool = False
    """Whether it is one of the repository's own: HEAD is then the commit before, as in `git am`."""

    def wants(self, paths: Iterable[str]) -> bool:
        return any(map(self.cares, paths))


@dataclass(frozen=True, slots=True)
class Steps:
    """All hooks of a configuration, each stage's in their order."""

    plan: tuple[Step, ...] = ()
    fixing: tuple[Step, ...] = ()
    checking: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    rejected: tuple[Step, ...] = ()

    @property
    def before(self) -> bool:
        """Whether anything is to be asked before a commit lands."""
        return bool(self.plan or self.fixing or self.checking)

    @property
    def parallel(self) -> bool:
        """Whether processes are started for it."""
        return any(step.judge is None for step in (*self.plan, *self.fixing, *self.checking))


def steps(config: Config, git_hooks: Path | None) -> Steps:
    """The hooks of the configuration, and the repository's own in the directory `git_hooks`.
    Raises `HookFault` for a shipped hook that there is not."""
    made = [_step(hook) for hook in config.hooks]
    own = [] if git_hooks is None else _git_steps(git_hooks)

    def of(stage: str, fixes: bool = False) -> tuple[Step, ...]:
        return tuple(step for step in (*made, *own) if (step.stage, step.fixes) == (stage, fixes))

    return Steps(
        plan=of("pre-apply"),
        fixing=of("pre-commit", fixes=True),
        checking=of("pre-commit"),
        after=of("post-commit"),
        rejected=of("post-reject"),
    )


def _step(hook: Hook) -> Step:
    env = _environment(hook.env)
    argv, judge = _command(hook, env)
    told = hook.model_dump_json(exclude={"timeout_seconds"})
    digest = sha256(f"{__version__}\0{told}\0{sorted(env.items())}".encode(errors="replace"))
    return Step(
        id=hook.id,
        stage=hook.stage,
        argv=argv,
        env=env,
        timeout=hook.timeout_seconds,
        network=hook.uses_network,
        cares=matcher(hook.files) if hook.files else lambda path: True,
        digest=digest.hexdigest(),
        fixes=hook.fixes,
        cache=hook.cache,
        judge=judge if hook.stage == "pre-apply" else None,
    )


def _command(hook: Hook, env: Mapping[str, str]) -> tuple[tuple[str, ...], shipped.Judge | None]:
    if not hook.run.startswith(shipped.PREFIX):
        return (SHELL, "-c", hook.run), None
    name = hook.run.removeprefix(shipped.PREFIX).strip()
    words, wrong = shipped.command(name), shipped.misfit(name, hook.stage)
    if words is None or wrong:
        raise HookFault(f"the hook {hook.id} cannot be used: {wrong}", "see `patchq hooks list`")
    return tuple(words), shipped.judge(name, env)


def _git_steps(directory: Path) -> list[Step]:
    """The repository's own hooks for applied patches, those that git would run."""
    found = []
    for name, stage, fixes in (
        (MESSAGE_HOOK, "pre-commit", True),
        (TREE_HOOK, "pre-commit", False),
        (TOLD_HOOK, "post-commit", False),
    ):
        file = directory / name
        if file.is_file() and os.access(file, os.X_OK):
            env = _environment(())
            words = (str(file), f".git/{MESSAGE}") if fixes else (str(file),)
            digest = sha256(file.read_bytes()).hexdigest()
            every = Step(
                name, stage, words, env, GIT_SECONDS, not stage.startswith("pre"),
                lambda path: True, digest, fixes, git=True,
                cache=not fixes,
            )  # fmt: skip
            found.append(every)
    return found


def _environment(names: Sequence[str]) -> dict[str, str]:
    there = {name: os.environ[name] for name in (*_KEPT, *names) if name in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **there}


def cannot_start(config: Config) -> list[tuple[int, str]]:
    """The hooks that could not be started, by their place in the list, and why."""
    found = []
    for number, hook in enumerate(config.hooks):
        wrong = _flaw(hook)
        if wrong:
            found.append((number, wrong))
    return found


def _flaw(hook: Hook) -> str | None:
    if hook.run.startswith(shipped.PREFIX):
        return shipped.misfit(hook.run.removeprefix(shipped.PREFIX).strip(), hook.stage)
    path = _environment(hook.env)["PATH"]
    shell = shutil.which(SHELL)
    if shell is None:
        return f"expected {SHELL} to run it, and there is none"
    said = subprocess.run(
        [shell, "-n", "-c", hook.run], capture_output=True, check=False, env={"PATH": path}
    )
    if said.returncode:
        return "expected a line that the shell can read, got: " + _last(said.stderr)
    word = _first_word(hook.run)
    if word is None or (word.startswith(("./", "../")) or ("/" in word and word[0] != "/")):
        return None  # a file of the candidate's own tree
    test = [shell, "-c", 'command -v -- "$1"', shell, word]
    if subprocess.run(test, capture_output=True, check=False, env={"PATH": path}).returncode:
        return f"expected a program to run, and there is no `{word}` on the PATH"
    return None


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().split("\n")
    return lines[-1]


def _first_word(line: str) -> str | None:
    """The program that a simple shell line starts with; None where that is not plain to see."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    while words and "=" in words[0]:
        words = words[1:]
    plain = words and not any(char in words[0] for char in "$`(){};&|<>*?[]!~")
    return words[0] if plain else None


def paths_named(config: Config) -> tuple[str, ...]:
    """Patterns of the files of the tree that the hooks' lines name: who changes one of them changes
    what a hook does, so auto mode does not land that unseen."""
    named = set()
    for hook in config.hooks:
        try:
            words = shlex.split(hook.run, comments=True)
        except ValueError:
            continue
        for word in words:
            name = word.removeprefix("./")
            script = (word is words[0] and "/" in word) or Path(word).suffix in _SCRIPTS
            if script and not name.startswith(("/", "-", "../")) and name.isprintable():
                named.add("/" + _SPECIAL.sub(r"\\\g<0>", name))
    return tuple(sorted(named))
