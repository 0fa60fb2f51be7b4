"""Processes of tests, none of which is waited for without an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from threading import Timer
from time import monotonic, sleep
from typing import IO, Any

_CHECKOUT = Path(__file__).parents[2]
MOST_SECONDS = 120.0
"""For a command that is to end, or to say something."""


def served(module: str) -> subprocess.Popen[str]:
    """Start a module of the checkout, which answers on its output what it reads."""
    command, pipe = [sys.executable, "-m", module], subprocess.PIPE
    return subprocess.Popen(command, cwd=_CHECKOUT, stdin=pipe, stdout=pipe, text=True)


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


def until(holds: Callable[[], object]) -> None:
    """Wait for what others do."""
    late = monotonic() + MOST_SECONDS
    while not holds():
        assert monotonic() < late
        sleep(0.02)


def line_of(pipe: IO[str] | None) -> str:
    """Return the next line of a pipe of which all was read that was written before."""
    assert pipe
    assert select([pipe], [], [], MOST_SECONDS)[0], "the process says nothing"
    return pipe.readline()


def become(cwd: str, environ: Mapping[str, str]) -> None:
    """Take over a directory and an environment, of which libgit2 learns, too."""
    import pygit2
    from pygit2.enums import ConfigLevel

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = environ["HOME"]


def close(process: subprocess.Popen[Any]) -> None:
    """End a process that ends with its input; whoever else has its output is not waited for."""
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    try:
        process.wait(MOST_SECONDS)
    finally:
        process.kill()
        process.stdout.close()


def code_of(child: int) -> int:
    """Return the exit code of a child, which is killed when it takes too long."""
    until = monotonic() + MOST_SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if monotonic() > until:
            os.kill(child, signal.SIGKILL)
        sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])
