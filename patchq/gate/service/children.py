"""The daemon's children: one lands what was accepted, one keeps a forge in step.

They end with the daemon: a child reads its standard input, which closes when the daemon is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
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
        self._child: subprocess.Popen[bytes] | None = None
        self._next = 0.0

    def turn(self, session: Session) -> None:
        """Start the command, if it is to run now."""

    def _start(self) -> None:
        self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE)

    def close(self) -> None:
        """End the command."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_END_SECONDS)
                return
            self._child.kill()
            with suppress(subprocess.TimeoutExpired):  # the kernel may hold it
                self._child.wait(_END_SECONDS)


class ForgeChild(Child):
    """Keeps `patchq forge sync` running where the configuration names a forge."""

    def turn(self, session: Session) -> None:
        """Start it, or end it where the section is gone."""
        if not session.config.has_forge or session.config.has_cluster:
            self.close()
            self._child = None
            return
        if self._child is not None and self._child.poll() is not None:
            message = f"`patchq forge sync` ended with exit code {self._child.poll()}"
            cure = "see the log, and `patchq forge check`; it is started again by itself"
            Troubles(session.queue_root).note("forge", message, cure)
            self._child, self._next = None, monotonic() + PAUSE_SECONDS
        if self._child is None and monotonic() >= self._next:
            self._start()


class TrainChild(Child):
    """Starts `patchq train` where something is accepted and no train runs."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command)
        self._seen: dict[str, str] = {}

    def turn(self, session: Session) -> None:
        """Start a train, unless one runs, or the last one left the same behind a moment ago."""
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._child, self._next = None, monotonic() + PAUSE_SECONDS
        config = session.config
        elsewhere = config.has_cluster or config.merges_there
        boarded = {} if elsewhere else session.repo.refs(records.BOARDED)
        if not boarded or (boarded == self._seen and monotonic() < self._next):
            return
        self._seen = boarded
        self._start()


def end_with_parent() -> None:
    """End this process, at any moment, once its standard input closes."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os._exit(1)

    Thread(target=watch, daemon=True).start()
