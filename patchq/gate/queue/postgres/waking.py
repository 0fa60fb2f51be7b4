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
from threading import Event, Thread
from time import monotonic

import psycopg

from patchq.gate.errors import Fault
from patchq.gate.queue.postgres.database import DatabaseServer, connect

# Returns true for a word and a lane that are to wake this process.
Concerns = Callable[[str, str], bool]
_PAUSE_SECONDS = 1.0


class Waking:
    """The notices on a server's connection; `close` ends it."""

    def __init__(self, server: DatabaseServer) -> None:
        self._server = server
        self._listens: int | None = None
        self._news: deque[str] = deque()
        self._rung, self._bell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def wait(self, seconds: float, concerns: Concerns) -> bool:
        """Wait for so long at most; return true if there was a notice that concerns this process.

        The first wait of a session ends at once, as it did not listen before.
        """
        session = self._server.session
        connection = self._server.connection
        if self._listens != session:
            self._server.run("select listen()")
            connection.add_notify_handler(lambda notify: self._news.append(notify.payload))
            self._listens = session
            return True
        poll, database = select.poll(), connection.fileno()
        for fd in (database, self._rung):
            poll.register(fd, select.POLLIN)
        until = monotonic() + seconds
        while not self._heard(concerns):
            ready = [fd for fd, _ in poll.poll(max(0.0, until - monotonic()) * 1000)]
            if self._rung in ready:
                with suppress(BlockingIOError):
                    os.read(self._rung, 4096)
            if database in ready:
                self._server.run("select")  # takes in what was sent, or finds out who is gone
            if not ready or self._rung in ready:
                return self._heard(concerns)
        return True

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


class Listening:
    """Calls `ring` when a report may have changed, on a connection and a thread of its own.

    A lost connection is made again after a pause: whoever is rung looks now and then anyway.
    """

    def __init__(self, database: str, ring: Callable[[], None]) -> None:
        self._conninfo, self._ring = database, ring
        self._stop = Event()
        self._thread = Thread(target=self._run, name="patchq-listens", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(Fault, psycopg.Error), connect(self._conninfo, "listens") as connection:
                connection.execute("select listen()")
                self._ring()
                while not self._stop.is_set():
                    notices = list(connection.notifies(timeout=_PAUSE_SECONDS, stop_after=1))
                    if any(one.payload.startswith("verdict ") for one in notices):
                        self._ring()
            self._stop.wait(_PAUSE_SECONDS)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * _PAUSE_SECONDS)
