"""Hearing of reports that change in the queue, on a connection and a thread of its own.

What is heard is a hint: whoever is rung looks himself, and looks now and then anyway.  So a lost
connection is made again after a pause, and nothing is told of it here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import psycopg

from patchq.gate.errors import Fault
from patchq.gate.queue.postgres.database import connect

_PAUSE_SECONDS = 1.0
_REPORTED = ("verdict", "held")
"""What is told of a lane in which a report has changed."""


class Listening:
    """Calls `ring` when there may be a new report; `close` ends it."""

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
                    told = connection.notifies(timeout=_PAUSE_SECONDS, stop_after=1)
                    if any(news.payload.partition(" ")[0] in _REPORTED for news in list(told)):
                        self._ring()
            self._stop.wait(_PAUSE_SECONDS)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * _PAUSE_SECONDS)
