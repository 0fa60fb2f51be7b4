"""Processes of the command that cost little to start: forks of one that has loaded everything.

Each is a process of its own, with its own directory, environment, output and end; only Python and
the libraries are not loaded again, which is most of what a daemon's start takes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.helpers import ending
from tests.helpers.ending import line_of, served

_MODULES = ("gate.service.lanes", "gate.service.daemon", "cli.serve", "gate.service.wake")
_OF_CLUSTERS = tuple(f"gate.queue.postgres.{module}" for module in ("engine", "lanes"))
"""What is loaded when it is needed first, and here before that; clusters are an extra."""

Point = tuple[str, str, signal.Signals]
"""A method as `module:Class.method`, `before` or `behind` its first call, and what the process
sends itself then."""


class Fork:
    """A process of `patchq`, used as a `subprocess.Popen` is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = _asked("poll", self.pid)
        return self._code

    def wait(self, timeout: float = 60.0) -> int:
        until = monotonic() + timeout
        while (code := self.poll()) is None:
            assert monotonic() < until, f"process {self.pid} goes on and on"
            sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # until then nobody else can have its number
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def start(
    *words: str,
    cwd: Path,
    log: Path,
    environ: Mapping[str, str] | None = None,
    dies: Point | None = None,
) -> Fork:
    """A new process of `patchq`; what it says is appended to the log.  Where that is a terminal, it
    is what the process reads, too, in a session of its own."""
    return Fork(_asked("start", words, str(cwd), {**os.environ, **(environ or {})}, dies, str(log)))


def end(processes: Iterable[Fork]) -> None:
    """Kill them, also those that are stopped, and wait until they are gone."""
    some = list(processes)
    for one in some:
        one.kill()
    for one in some:
        one.wait()


def close() -> None:
    """End the process of which the others are forks, if there is one."""
    if _nursery.cache_info().currsize:
        process = _nursery()
        _nursery.cache_clear()
        ending.close(process)


@cache
def _nursery() -> subprocess.Popen[str]:
    return served(__name__)


def _asked(*request: object) -> Any:
    nursery = _nursery()
    assert nursery.stdin
    print(json.dumps(request), file=nursery.stdin, flush=True)
    return json.loads(line_of(nursery.stdout))


# ---------------------------------------------------------------- in the nursery


def _serve() -> None:
    from importlib import import_module

    for module in (*_MODULES, *(_OF_CLUSTERS if find_spec("psycopg") else ())):
        import_module(f"patchq.{module}")
    import_module("watchdog.observers.inotify")
    for line in sys.stdin:
        what, *more = json.loads(line)
        answer: int | None
        if what == "start":
            *how, log = more
            to = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOCTTY, 0o666)
            answer = os.fork()
            if answer == 0:
                _speak_to(to)
                _become(*how)
            os.close(to)
        else:
            [pid] = more
            ended, status = os.waitpid(pid, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        print(json.dumps(answer), flush=True)


def _become(words: list[str], cwd: str, environ: dict[str, str], dies: Point | None) -> None:
    from patchq.cli import main

    ending.become(cwd, environ)
    if dies is not None:
        _have_it_die(*dies)
    sys.exit(main(words))


def _speak_to(to: int) -> None:
    """Have the standard streams lead there, made anew: their buffers depend on what it is."""
    if os.isatty(to):
        os.setsid()
        os.dup2(to, 0)
    else:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    os.dup2(to, 1)
    os.dup2(to, 2)
    os.close(to)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _have_it_die(point: str, when: str, number: int) -> None:
    from importlib import import_module

    module, _, name = point.partition(":")
    of, _, method = name.partition(".")
    owner = getattr(import_module(module), of)
    real: Callable[..., Any] = getattr(owner, method)
    due = [number]

    def dying(*args: Any, **named: Any) -> Any:
        if when == "before" and due:
            os.kill(os.getpid(), due.pop())
        done = real(*args, **named)
        if when == "behind" and due:
            os.kill(os.getpid(), due.pop())
        return done

    setattr(owner, method, dying)


if __name__ == "__main__":
    _serve()
