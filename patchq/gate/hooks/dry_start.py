"""Find configured hooks that could not be started, without running any.

The program that a hook's line begins with is looked for in a sandbox like the hook's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

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
from patchq.gate.hooks.sandbox import can_sandbox, no_sandbox, try_out

# Programs of shipped hooks, of which one has to be there.
_NEEDS = {"ruff": ("ruff",), "pre-commit-framework": ("prek", "pre-commit")}
_UNCONFINED = "expected true for a hook that runs what changes hold, as there is no sandbox"
_CURE = "name what it is made of in `visible`, or put it on the PATH"

# The place of a key in the configuration, and the mistake there.
Flaw = tuple[tuple[str | int, ...], str]


def flaws(config: Config, home: Path, queue: Path) -> list[Flaw]:
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
        return [
            (("hooks", number, key), why)
            for number, hook in enumerate(config.hooks)
            for key, why in _flaws(hook, config, home, root, sandboxes)
        ]


def _flaws(
    hook: Hook, config: Config, home: Path, root: Path, sandboxes: bool
) -> Iterator[tuple[str, str]]:
    visible = [mounts.located(place, home) for place in hook.visible]
    for place in visible:
        if not os.path.exists(place):
            yield "visible", f"expected a path that is there, got `{place}`"
    trusted = name_in(hook.run) == CI
    if hook.stage == "pre-commit" and not (trusted or sandboxes or hook.unconfined):
        why, cure = no_sandbox()
        yield "unconfined", f"{_UNCONFINED}: {why} ({cure})"
    if trusted and not config.has_forge:
        yield "run", f"expected a `forge` section beside `{hook.run}`"
    path = environment(hook.env)["PATH"]
    shown = mounts.seen(os.pathsep.join((path, *parts(hook))), visible) if sandboxes else ()
    sandboxed = sandboxes and hook.stage.startswith("pre-")

    def is_seen(program: str) -> bool:
        words = (SHELL, "-c", 'command -v -- "$1"', SHELL, program)
        return try_out(root, words, path, shown, sandboxed=sandboxed).code == 0

    if flaw := _flaw(hook, path, is_seen):
        yield "run", flaw


def _flaw(hook: Hook, path: str, is_seen: Callable[[str], bool]) -> str | None:
    name, needed = name_in(hook.run), list[str]()
    if name is None:
        words = (SHELL, "-n", "-c", hook.run)
        syntax = subprocess.run(words, capture_output=True, errors="replace", timeout=60)
        if syntax.returncode:
            last = syntax.stderr.strip().rpartition("\n")[2]
            return f"expected a line that the shell can read, got: {last}"
        needed += filter(None, [_first_word(hook.run)])
    elif why := misfit(name, hook.stage):
        return why
    elif hook.stage != "pre-apply" or not judge(name):
        others = _NEEDS.get(name, ())
        found = [program for program in others if shutil.which(program, path=path)]
        if others and not found:
            return f"expected {' or '.join(others)}, which it runs, on the PATH"
        needed += [sys.executable, *found]
    lost = next((program for program in needed if not is_seen(program)), None)
    return lost and f"expected a program that hooks see, got `{lost}`: {_CURE}"


def _first_word(line: str) -> str | None:
    word = next((word for word in shell_words(line) if "=" not in word), None)
    if word is None or any(char in word for char in "$`(){};&|<>*?[]!~"):
        return None
    return None if "/" in word and not word.startswith("/") else word
