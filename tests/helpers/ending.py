"""Processes of tests, none of which is waited for without an end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from select import select
from threading import Timer
from time import monotonic, sleep
from typing import IO, Any, TypeVar

T = TypeVar("T")
MOST_SECONDS = 120.0
"""For a command that is to end, or to say something."""


@contextmanager
def running(
    words: Sequence[str], most: float = MOST_SECONDS, **how: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a process whose group is killed behind the block, or late: its pipes end then."""
    with subprocess.Popen(words, start_new_session=True, **how) as process:
        late = Timer(most, _kill_group, [process.pid])
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            _kill_group(process.pid)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def until(holds: Callable[[], T]) -> T:
    """Wait for what others do, and return it."""
    late = monotonic() + MOST_SECONDS
    while not (found := holds()):
        assert monotonic() < late
        sleep(0.02)
    return found


def line_of(pipe: IO[str] | None) -> str:
    """Return the next line of a pipe of which all was read that was written before."""
    assert pipe
    assert select([pipe], [], [], MOST_SECONDS)[0], "the process says nothing"
    return pipe.readline()


def in_child(action: Callable[[], int]) -> int:
    """Return the exit code of an action in a child; 99 if it fails."""
    if child := os.fork():
        return code_of(child)
    code = 99
    try:
        code = action()
    finally:
        os._exit(code)


def code_of(child: int) -> int:
    """Return the exit code of a child, which is killed when it takes too long."""
    until = monotonic() + MOST_SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if monotonic() > until:
            os.kill(child, signal.SIGKILL)
        sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])
