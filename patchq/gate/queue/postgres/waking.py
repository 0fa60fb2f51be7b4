"""Waiting for notices: words about lanes, which every process of the queue hears.

A notice is a hint: whoever wakes looks.  Each says what concerns it, and sleeps on through the
rest.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from psycopg import Connection

from patchq.gate.queue.postgres.database import DatabaseServer

# Returns true for a word and a lane that are to wake this process.
Concerns = Callable[[str, str], bool]


class Waking:
    """The notices on a server's connection; `close` ends it."""

    def __init__(self, server: DatabaseServer) -> None:
        self._server = server
        self._listens: Connection | None = None
        self._news: deque[str] = deque()
        self._rung, self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def wait(self, seconds: float, concerns: Concerns, bell: int | None = None) -> bool:
        """Wait for so long at most; return true if there was a notice that concerns this process.

        A `ring` ends it, and a descriptor `bell` that can be read.  The first wait of a connection
        ends at once, as it did not listen before.
        """
        connection = self._server.connection
        if self._listens is not connection:
            self._server.run("select listen()")
            connection.add_notify_handler(lambda notify: self._news.append(notify.payload))
            self._listens = connection
            return True
        poll, database = select.poll(), connection.fileno()
        for fd in (database, self._rung, *([] if bell is None else [bell])):
            poll.register(fd, select.POLLIN)
        until = monotonic() + seconds
        while not self._heard(concerns):
            ready = {fd for fd, _ in poll.poll(max(0.0, until - monotonic()) * 1000)}
            with suppress(BlockingIOError):
                os.read(self._rung, 4096)
            if database in ready:
                self._server.run("select")  # takes in what was sent, or finds out who is gone
            if ready != {database}:
                return self._heard(concerns)
        return True

    def rest(self, seconds: float) -> None:
        """Wait for a ring, for so long at most."""
        select.select([self._rung], [], [], seconds)

    def _heard(self, concerns: Concerns) -> bool:
        heard = False
        while self._news:
            word, _, lane = self._news.popleft().partition(" ")
            heard = heard or concerns(word, lane)
        return heard

    def ring(self) -> None:
        """End a wait; from any thread, and from handlers of signals."""
        with suppress(BlockingIOError, OSError):
            os.write(self._bell, b".")

    def close(self) -> None:
        for fd in (self._rung, self._bell):
            with suppress(OSError):
                os.close(fd)
        self._rung = self._bell = -1
