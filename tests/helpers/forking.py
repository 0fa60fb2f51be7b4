"""Processes of the command that cost little to start: a fork of one that has loaded everything.

Each is a process of its own, with its own directory, environment and output; only Python and the
libraries are not loaded again, which is most of what a worker's start takes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

_MODULES = (
    *("cli.worker", "cli.feeding", "cli.watch", "queue.postgres.engine"),
    *("queue.postgres.entries", "queue.postgres.listening", "service.doorbell"),
)
"""What is loaded when it is needed first, and here before that."""


class Nursery:
    """The process of which the others are forks."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *words: str, cwd: Path, log: Path, **environ: str) -> int:
        """The id of a new process of `patchq`; what it says is appended to the log."""
        assert self._process.stdin
        assert self._process.stdout
        request = [words, str(cwd), {**os.environ, **environ}, str(log)]
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def end(pids: list[int]) -> None:
    """Kill them, and wait until they are gone."""
    for pid in pids:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
    until = monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert monotonic() < until
        sleep(0.005)


def _serve() -> None:
    from importlib import import_module

    for module in _MODULES:
        import_module(f"patchq.{module}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        words, cwd, environ, log = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(words, cwd, environ, log)
        print(pid, flush=True)


def _become(words: list[str], cwd: str, environ: dict[str, str], log: str) -> None:
    import pygit2
    from pygit2.enums import ConfigLevel

    from patchq.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = environ["HOME"]
    to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in ((0, nothing), (1, to), (2, to)):
        os.dup2(file, number)
    code = 1
    try:
        code = main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
