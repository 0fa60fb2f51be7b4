"""Processes of the command, each of which may send itself a signal at a call of a method."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).parents[2]
_DYING = f"""
import sys
sys.path.insert(0, {str(_CHECKOUT)!r})
from patchq.cli import main
from tests.helpers.processes import have_it_die
have_it_die(*sys.argv[1:4])
sys.exit(main(sys.argv[4:]))
"""

Point = tuple[str, str, signal.Signals]
"""A method as `module:Class.method`, `before` or `behind` its first call, and what the process
sends itself then."""


class Process(subprocess.Popen[bytes]):
    """A process that is not waited for without an end."""

    def wait(self, timeout: float | None = 60.0) -> int:
        return super().wait(timeout)


def start(
    *words: str,
    cwd: Path,
    log: Path,
    environ: Mapping[str, str] | None = None,
    dies: Point | None = None,
) -> Process:
    """A new process of `patchq`; what it says is appended to the log.  Where that is a terminal, it
    is what the process reads, too, in a session of its own."""
    how = ["-c", _DYING, *map(str, (*dies[:2], int(dies[2])))] if dies else ["-m", "patchq"]
    to = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOCTTY, 0o666)
    try:
        return Process(
            [sys.executable, *how, *words],
            cwd=cwd,
            env={**os.environ, **(environ or {})},
            stdin=to if os.isatty(to) else subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            start_new_session=os.isatty(to),
        )
    finally:
        os.close(to)


def end(processes: Iterable[Process]) -> None:
    """Kill them, also those that are stopped, and wait until they are gone."""
    some = list(processes)
    for one in some:
        one.kill()
    for one in some:
        one.wait()


def have_it_die(point: str, when: str, number: str) -> None:
    """Have this process send itself the signal at the first call of the method."""
    module, _, name = point.partition(":")
    of, _, method = name.partition(".")
    owner = getattr(import_module(module), of)
    real: Callable[..., Any] = getattr(owner, method)
    due = [int(number)]

    def dying(*args: Any, **named: Any) -> Any:
        if when == "before" and due:
            os.kill(os.getpid(), due.pop())
        done = real(*args, **named)
        if when == "behind" and due:
            os.kill(os.getpid(), due.pop())
        return done

    setattr(owner, method, dying)
