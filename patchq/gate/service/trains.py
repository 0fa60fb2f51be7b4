"""The daemon's train: a child process lands what was accepted, while the daemon goes on.

It ends with the daemon: the child reads its standard input, which closes when the daemon is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from threading import Thread
from time import monotonic

from patchq.gate.git import records
from patchq.gate.pipeline.session import Session

PAUSE_SECONDS = 60.0  # between two trains of which the first landed nothing


class TrainChild:
    """Starts `patchq train` where something is accepted and no train runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._seen: dict[str, str] = {}
        self._next = 0.0

    def turn(self, session: Session) -> None:
        """Start a train, unless one runs, or the last one left the same behind a moment ago."""
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._child, self._next = None, monotonic() + PAUSE_SECONDS
        boarded = session.repo.refs(records.BOARDED)
        if not boarded or (boarded == self._seen and monotonic() < self._next):
            return
        self._seen = boarded
        self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE)

    def close(self) -> None:
        """End the train that runs; what is accepted stays so."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            self._child.wait()


def end_with_parent() -> None:
    """End this process, at any moment, once its standard input closes."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os._exit(1)

    Thread(target=watch, daemon=True).start()
