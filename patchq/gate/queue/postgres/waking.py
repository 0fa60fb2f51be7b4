"""Waiting until the queue has something for this process: what is told, a ring, or the time.

What is told is a word and a lane, and a hint: whoever wakes looks himself.  Every process hears all
of it, so each says what concerns it, and sleeps on through the rest.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from patchq.gate.queue.postgres.database import Database

Concerns = Callable[[str, str], bool]
"""Whether a word that was told of a lane is one to wake for."""


class Waking:
    """On the connection of `database`; `close` ends it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listens: int | None = None
        self._news: deque[str] = deque()
        self._rung, self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def wait(self, seconds: float, concerns: Concerns) -> bool:
        """Wait for so long at most; whether something was told that concerns this process.  The
        first wait of a session ends at once, as nobody listened before."""
        session = self._database.session
        connection = self._database.connection
        if self._listens != session:
            self._database.run("select listen()")
            connection.add_notify_handler(lambda notify: self._news.append(notify.payload))
            self._listens = session
            return True
        until = monotonic() + seconds
        while not self._told(concerns):
            left = max(0.0, until - monotonic())
            ready, _, _ = select.select([connection.fileno(), self._rung], [], [], left)
            if self._rung in ready:
                with suppress(BlockingIOError):
                    os.read(self._rung, 4096)
            if connection.fileno() in ready:
                self._database.run("select")  # takes in what was sent, or finds out who is gone
            if not ready or self._rung in ready:
                return self._told(concerns)
        return True

    def _told(self, concerns: Concerns) -> bool:
        told = False
        while self._news:
            word, _, lane = self._news.popleft().partition(" ")
            told = told or concerns(word, lane)
        return told

    def ring(self) -> None:
        """End a wait; from any thread, and from handlers of signals."""
        with suppress(BlockingIOError, OSError):
            os.write(self._bell, b".")

    def close(self) -> None:
        for fd in (self._rung, self._bell):
            with suppress(OSError):
                os.close(fd)
        self._rung = self._bell = -1
