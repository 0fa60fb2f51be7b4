"""The daemon's children: one lands what was accepted, one keeps a forge in step.

They end with the daemon: a child reads its standard input, which closes when the daemon is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic

from patchq.gate.git import records
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.shelf import Troubles

_END_SECONDS = 10.0
PAUSE_SECONDS = 60.0  # between two trains of which the first landed nothing


class Child:
    """A command that runs beside the daemon, once at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._next = 0.0

    def turn(self, session: Session) -> None:
        """Start the command if it is to run now."""

    def runs(self) -> bool:
        """Return true while the command runs; its end begins a pause."""
        if self._process is not None and self._process.poll() is not None:
            self._process, self._next = None, monotonic() + PAUSE_SECONDS
        return self._process is not None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
                return
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # the kernel may hold it
                process.wait(_END_SECONDS)


class ForgeChild(Child):
    """Keeps `patchq forge sync` running where the configuration names a forge."""

    def turn(self, session: Session) -> None:
        before = self._process
        if not session.config.has_forge or session.config.has_cluster:
            self.close()
        elif not self.runs():
            if before is not None:
                message = f"`patchq forge sync` ended with exit code {before.returncode}"
                cure = "see the log, and `patchq forge check`; it is started again by itself"
                Troubles(session.queue_root).note("forge", message, cure)
            if monotonic() >= self._next:
                self.start()


class TrainChild(Child):
    """Starts `patchq train` where something is accepted and no train runs.

    One that left the same behind a moment ago is waited for.
    """

    _seen: Mapping[str, str] = {}

    def turn(self, session: Session) -> None:
        config = session.config
        if self.runs() or config.has_cluster or config.merges_there:
            return
        boarded = session.repo.refs(records.BOARDED)
        if boarded and (boarded != self._seen or monotonic() >= self._next):
            self._seen = boarded
            self.start()


def end_with_parent() -> None:
    """End this process, at any moment, once its standard input closes."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os._exit(1)

    Thread(target=watch, daemon=True).start()
