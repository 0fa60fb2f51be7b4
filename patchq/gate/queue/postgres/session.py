"""A process's session in the queue, which its rows name: what it has in hand ends with it.

A session lives as long as the connection.  The next one has nothing in hand, and begins with what
a new connection needs: whose tables these are, and a beat.
"""

from __future__ import annotations

from collections.abc import Callable

from patchq.gate.queue.postgres.database import Database
from patchq.gate.queue.postgres.lanes import Beat, drop_claims


class QueueSession:
    """The session of this process; `own` are the rows that it has in hand.

    `belongs` raises where the tables are not this repository's; who `beats` for longer than
    `takeover` seconds not is taken for frozen.
    """

    def __init__(
        self,
        database: Database,
        takeover: float,
        *,
        beats: bool,
        belongs: Callable[[Database], None],
    ) -> None:
        self._database = database
        self._takeover = takeover
        self._beats = beats
        self._belongs = belongs
        self._beat: Beat | None = None
        self._number: int | None = None
        self.own: set[int] = set()

    def number(self) -> int:
        """This session's; a new one has nothing in hand."""
        number = self._database.session
        if number != self._number:
            self._belongs(self._database)
            if self._number is not None and self.own and not self._database.forked:
                self._survive(self._number)
            self._number = number
            self.own.clear()
            self._database.run("delete from sessions where id <> %s and not alive(id)", number)
            if self._beat is not None:
                self._beat.stop()
            if self._beats:
                self._beat = Beat(self._database, self._takeover)
        return number

    def _survive(self, before: int) -> None:
        """It lost its connection and lives: that was no death of what it had in hand, also where
        somebody has taken that over meanwhile and counted one."""
        self._database.run(
            """
            update responses set
                deaths = greatest(0, deaths - (session is distinct from %(before)s)::integer),
                session = nullif(session, %(before)s)
            where number = any(%(own)s) and state in ('claimed', 'ending') and not adopted
            """,
            before=before,
            own=list(self.own),
        )

    @property
    def lost(self) -> bool:
        """Whether there was one, and its connection is gone."""
        return self._database.lost and self._number is not None

    def drop(self) -> bool:
        """Leave what it has in hand to whoever comes first; whether the session lives."""
        lives = self._number is not None and not self._database.lost
        if self._number is not None and lives:
            drop_claims(self._database, self._number)
        self.own.clear()
        return lives

    def close(self) -> None:
        """Beat no more, and have nothing in hand."""
        if self._beat is not None:
            self._beat.close()
            self._beat = None
        self.own.clear()
