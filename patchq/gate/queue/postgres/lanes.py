"""Lanes: who owns them, and notices of what comes for them.

A lane's owner is the session that holds the advisory lock on it.

The lock ends with its connection, so the lanes of a process that died are free at once.  One that
is frozen, or cut off, keeps its connection for a while: it stops to beat, and after
`takeover_seconds` without a beat a process that wants one of its lanes has the server end the
connection that holds the lock.  When it wakes it has no connection, and so no lane and no claim:
there is nothing that it could still write.

A notice is a hint, and every process of the queue hears it: whoever wakes looks.  Each says what
concerns it, and sleeps on through the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from threading import Event, Thread
from time import monotonic

from patchq.gate.errors import Fault
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.postgres.database import DatabaseServer

_LOG = logging.getLogger("patchq")
_BEATS = 4  # so many in the time after which an owner counts as frozen
# Returns true for a word and a lane that are to wake this process.
Concerns = Callable[[str, str], bool]
_BEAT = "update sessions set beat = epoch() where number = :session"


class Lanes:
    """The lanes of one session, all of which match one of the `patterns`."""

    def __init__(self, server: DatabaseServer, patterns: Sequence[str], takeover: float) -> None:
        self._server = server
        self._patterns = patterns
        self._takeover = takeover
        self._own: set[str] = set()

    @property
    def own(self) -> list[str]:
        """The lanes that this session owns now."""
        if self._server.lost:
            self._own.clear()
        return sorted(self._own)

    def forget(self) -> None:
        """Begin anew: a new session owns none."""
        self._own.clear()

    def wants(self, lane: str) -> bool:
        return any(fnmatchcase(lane, pattern) for pattern in self._patterns)

    def take(self, *lanes: str) -> bool:
        """Own the first of these lanes that is free; return True if one is.

        A lane is free if no live process owns it.
        """
        wanted = list(filter(self.wants, lanes))
        if self._own.intersection(self.own, lanes) or self._lock_first(wanted):
            return True
        return self._end_frozen(wanted) and self._lock_first(wanted)

    def _lock_first(self, lanes: Sequence[str]) -> bool:
        locked = self._server.column(
            """
            with locked as materialized (
                select name from unnest(cast(:lanes as text[])) name
                where pg_try_advisory_lock(lane_key(name)) limit 1
            ), noted as (
                insert into lanes (name, session, since)
                select name, cast(:me as bigint), epoch() from locked
                on conflict (name) do update
                set session = excluded.session, since = excluded.since
            ) select name from locked
            """,
            lanes=lanes,
            me=self._server.session,
        )
        self._own.update(locked)
        return bool(locked)

    def take_one_more(self) -> None:
        """Own the lane in which something waits the longest, of those without an owner."""
        self.take(
            *self._server.column(
                """
                select l.name from lanes l, lateral (
                    (select came from responses
                    where lane = l.name and state = 'waiting' order by number limit 1)
                    union all
                    (select asked from errands
                    where lane = l.name and answer is null order by number limit 1)
                ) first (since)
                where l.name <> all(:own)
                group by l.name order by min(first.since)
                """,
                own=self.own,
            )
        )

    def orphaned(self) -> list[str]:
        """Return lanes with a dead process's claims, or held ones and no owner.

        They are this session's, or it may own them.
        """
        lanes = self._server.column(
            """
            select lane from (
                select distinct lane, session from responses
                where state in ('claimed', 'ending') and session is distinct from :me
                offset 0
            ) others where gone(session, :takeover)
            union
            select l.name from lanes l
            where exists (select from responses where lane = l.name and state = 'held')
              and (holder(lane_key(l.name)) is null or gone(l.session, :takeover))
            """,
            me=self._server.session,
            takeover=self._takeover,
        )
        own = self.own
        return [lane for lane in lanes if lane in own or self.wants(lane)]

    def _end_frozen(self, lanes: Sequence[str]) -> bool:
        """Have the server end frozen owners of lanes; return True if there were any.

        They do not beat any more.
        """
        frozen = self._server.all(
            """
            select s.number, s.name, s.host, min(lane)
            from sessions s, unnest(cast(:lanes as text[])) lane
            where s.beat < epoch() - :takeover
              and holder(session_key(s.number)) = holder(lane_key(lane))
            group by s.number
            """,
            takeover=self._takeover,
            lanes=lanes,
        )
        for session, name, host, lane in frozen:
            self._server.run(
                "select pg_terminate_backend(holder(session_key(:session)), 2000)", session=session
            )
            _LOG.warning(
                "worker %s on %s did not beat for %g s, so its connection was ended: lane %s",
                *(name, host, self._takeover, lane),
            )
        return bool(frozen)

    def leave(self) -> None:
        """Let others own all of them."""
        unlock = "select pg_advisory_unlock(lane_key(lane)) from unnest(cast(:own as text[])) lane"
        self._server.run(unlock, own=self.own)
        self._own.clear()

    def leave_idle(self) -> None:
        """Let others own those in which nothing is in hand, or held."""
        if own := self.own:
            self._own.difference_update(
                self._server.column(
                    """
                    with idle as materialized (
                        select lane from unnest(cast(:own as text[])) lane where not exists (
                            select from responses r
                            where r.lane = lane.lane and state in ('claimed', 'held', 'ending')
                        )
                    ) select lane from idle where pg_advisory_unlock(lane_key(lane))
                    """,
                    own=own,
                )
            )


def beat(server: DatabaseServer, session: int, takeover: float) -> Callable[[], None]:
    """Show that this process is not frozen, until the returned function is called.

    It beats on a connection and thread of its own.
    """
    own, over = DatabaseServer(server.conninfo, f"{server.name} beat"), Event()
    server.run(_BEAT, session=session)

    def run() -> None:
        while not over.wait(takeover / _BEATS):
            with suppress(Fault):  # the next one connects again
                own.run(_BEAT, session=session)
        own.close()

    def stop() -> None:
        over.set()
        thread.join(2.0)

    thread = Thread(target=run, name="patchq-beat", daemon=True)
    thread.start()
    return stop


class Waking:
    """The notices on a server's connection."""

    def __init__(self, server: DatabaseServer) -> None:
        self._server = server
        self._listens: object = None
        self._news: list[str] = []

    def wait(self, seconds: float, concerns: Concerns, bell: Bell) -> bool:
        """Wait for a notice that concerns this process; return True for one.

        It ends after so many `seconds`, and by a ring.
        The first wait of a connection ends at once, as it did not listen before.
        """
        connection = self._server.connection
        if self._listens is not connection:
            self._server.run("select listen()")
            connection.add_notify_handler(lambda notify: self._news.append(notify.payload))
            self._listens = connection
            return True
        database = connection.fileno()
        until = monotonic() + seconds
        while not self._heard(concerns):
            ready = bell.wait(until - monotonic(), database)
            if database in ready:
                self._server.run("select")  # takes in what was sent, or finds out who is gone
            if ready != {database}:
                return self._heard(concerns)
        return True

    def _heard(self, concerns: Concerns) -> bool:
        news = [notice.partition(" ") for notice in self._news]
        self._news.clear()
        return any(concerns(word, lane) for word, _, lane in news)
