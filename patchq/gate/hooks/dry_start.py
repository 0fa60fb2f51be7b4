"""Find configured hooks that could not be started, without running any.

The program that a hook's line begins with is started with `--version`, in a sandbox like the
hook's.  A program that ends well outside and not in the sandbox misses something there, and its
complaint is shown.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from patchq.gate.config.schema import Config, Hook
from patchq.gate.hooks import mounts
from patchq.gate.hooks.configured import (
    CI,
    SHELL,
    environment,
    judge,
    misfit,
    name_in,
    parts,
    shell_words,
)
from patchq.gate.hooks.sandbox import HookExit, can_sandbox, no_sandbox, try_out

_MOST_OUTPUT = 300  # characters of a complaint
# Programs of shipped hooks, of which one has to be there.
_NEEDS = {"ruff": ("ruff",), "pre-commit-framework": ("prek", "pre-commit")}
_UNCONFINED = "expected true for a hook that runs what changes hold, as there is no sandbox"
_CURE = "name what it is made of in `visible`, or put it on the PATH"
_MODULE = re.compile(r"\s*\S*python[\d.]*\s+(-m)\s+([\w.]+)")

# The place of a key in the configuration, and the mistake there.
Flaw = tuple[tuple[str | int, ...], str]


def flaws(config: Config, gitdir: Path, home: Path, queue: Path) -> list[Flaw]:
    """Return what keeps hooks from starting.

    Paths in the configuration are below `home`; the queue need not be there."""
    if not config.hooks:
        return []
    below = queue / "hooks" if os.access(queue, os.W_OK | os.X_OK) else None
    if below:
        below.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="probe-", dir=below) as name:
        root = Path(os.path.realpath(name))
        sandboxes = can_sandbox(below or root)
        found: list[Flaw] = []
        for number, hook in enumerate(config.hooks):
            visible = [mounts.located(place, home) for place in hook.visible]
            reasons = (_misplaced(place, (gitdir, queue)) for place in visible)
            wrong = [("visible", why) for why in reasons if why]
            trusted = name_in(hook.run) == CI
            if hook.stage == "pre-commit" and not (trusted or sandboxes or hook.unconfined):
                why, cure = no_sandbox()
                wrong.append(("unconfined", f"{_UNCONFINED}: {why} ({cure})"))
            if trusted and not config.has_forge:
                wrong.append(("run", f"expected a `forge` section beside `{hook.run}`"))
            path = environment(hook.env)["PATH"]
            names = os.pathsep.join((path, *parts(hook)))
            shown = mounts.seen(names, visible) if sandboxes else ()
            start = _Start(root, path, shown, sandboxes and hook.stage.startswith("pre-"))
            if flaw := start.flaw(hook):
                wrong.append(("run", flaw))
            found += [(("hooks", number, key), why) for key, why in wrong]
        return found


def _misplaced(place: str, own: Sequence[Path]) -> str:
    if why := mounts.unfit(place, own):
        return f"expected what programs need, got `{place}`, which {why}"
    return "" if os.path.exists(place) else f"expected a path that is there, got `{place}`"


class _Start(Struct, frozen=True):
    """The way programs are started below `root`: with this PATH and what they see."""

    root: Path
    path: str
    shown: Sequence[str]
    sandboxed: bool

    def flaw(self, hook: Hook) -> str | None:
        name = name_in(hook.run)
        if name is not None:
            return misfit(name, hook.stage) or self._shipped(name, hook)
        syntax = self._run([SHELL, "-n", "-c", hook.run], sandboxed=False)
        if syntax.code:
            last = syntax.output.strip().split("\n")[-1]
            return f"expected a line that the shell can read, got: {last}"
        word = _first_word(hook.run)
        return self._program(word, hook.run) if word else None

    def _shipped(self, name: str, hook: Hook) -> str | None:
        if judge(name) and hook.stage == "pre-apply":
            return None
        needed = _NEEDS.get(name, ())
        found = [program for program in needed if shutil.which(program, path=self.path)]
        if needed and not found:
            return f"expected {' or '.join(needed)}, which it runs, on the PATH"
        return next(filter(None, map(self._program, (sys.executable, *found))), None)

    def _program(self, word: str, line: str = "") -> str | None:
        found = self._run(
            [SHELL, "-c", 'command -v -- "$1"', SHELL, word], sandboxed=self.sandboxed
        )
        if found.code:
            return f"expected a program that hooks see, got `{word}`: {_CURE}"
        if not self.sandboxed or not found.output.startswith("/"):  # the shell itself does that
            return None
        module = _MODULE.match(line)
        attempt = [word, *(module.groups() if module else ()), "--version"]
        end = self._run(attempt, sandboxed=True)
        if not end.code or self._run(attempt, sandboxed=False).code != 0:
            return None
        output = end.output.strip()[-_MOST_OUTPUT:]
        return (
            f"expected a program that starts in the sandbox, where `{' '.join(attempt)}` ends with "
            f"{end.code}, {output or 'and says nothing'}: {_CURE}"
        )

    def _run(self, argv: Sequence[str], *, sandboxed: bool) -> HookExit:
        return try_out(self.root, argv, self.path, self.shown, sandboxed=sandboxed)


def _first_word(line: str) -> str | None:
    word = next((word for word in shell_words(line) if "=" not in word), None)
    if word is None or any(char in word for char in "$`(){};&|<>*?[]!~"):
        return None
    return None if "/" in word and not word.startswith("/") else word
