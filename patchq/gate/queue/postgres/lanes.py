"""Owners of lanes: a lane's owner is the session that holds the advisory lock on it.

The lock ends with its connection, so the lanes of a process that died are free at once.  One that
is frozen, or cut off, keeps its connection for a while: it stops to beat, and after
`takeover_seconds` without a beat a process that wants one of its lanes has the server end the
connection that holds the lock.  When it wakes it has no connection, and so no lane and no claim:
there is nothing that it could still write.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from threading import Event, Thread

import psycopg

from patchq.gate.errors import Fault
from patchq.gate.queue.postgres.database import DatabaseServer, connect, translated

_LOG = logging.getLogger("patchq")
_BEATS = 4  # so many in the time after which an owner counts as frozen
_BEAT = "update sessions set beat = epoch() where number = :session"


class Lanes:
    """The lanes of one session, all of which match one of the `patterns`."""

    def __init__(self, server: DatabaseServer, patterns: Sequence[str], takeover: float) -> None:
        self._server = server
        self._patterns = patterns
        self._takeover = takeover
        self._session: int | None = None
        self._own: set[str] = set()

    @property
    def own(self) -> list[str]:
        """The lanes that this session owns now."""
        if self._server.lost or self._session != self._server.session:
            self._own.clear()
        return sorted(self._own)

    def wants(self, lane: str) -> bool:
        return any(fnmatchcase(lane, pattern) for pattern in self._patterns)

    def wanted(self, lanes: Iterable[str]) -> list[str]:
        """Return the lanes among these that this session may own and does not."""
        own = self.own
        return [lane for lane in lanes if lane not in own and self.wants(lane)]

    def enter(self, lane: str) -> None:
        """Let others know that there is such a lane."""
        self._server.run(
            "insert into lanes (name) values (:lane) on conflict do nothing", lane=lane
        )

    def drop_claims(self, session: int) -> None:
        """Leave what the session has in hand to whoever comes first.

        A locked row is being adopted, by a process that may be frozen in mid-transaction.
        """
        self._server.run(
            "update responses set session = null where number in (select number from responses"
            " where session = :session and state in ('claimed', 'ending') and adopted = 0"
            " for update skip locked)",
            session=session,
        )

    def take(self, lane: str) -> bool:
        """Own the lane, unless a live worker does."""
        if lane in self.own:
            return True
        session = self._server.session
        if not self._locked(lane) and not (self._end_frozen(lane) and self._locked(lane)):
            return False
        self._session = session
        self._own.add(lane)
        self._server.run(
            "insert into lanes (name, session, since) values (:lane, :session, epoch())"
            " on conflict (name) do update set session = excluded.session, since = excluded.since",
            lane=lane,
            session=session,
        )
        return True

    def take_free(self, lane: str) -> bool:
        """Own the lane, unless a live worker does, or a dead one left claims there."""
        if lane in self.own:
            return True
        found = self._first_free([lane])
        if found is None and self._end_frozen(lane):
            found = self._first_free([lane])
        if found is None:
            return False
        self._session = self._server.session
        self._own.add(lane)
        if found[1]:
            self.leave([lane])
        return not found[1]

    def take_one_more(self) -> None:
        """Own the lane in which something waits the longest, of those without an owner, if there is
        one.  One that its owner left with claims is recovered first."""
        own = self.own
        rows = self._server.all(
            """
            select l.name, exists (
                select from sessions where beat < epoch() - :takeover and alive(number)
            ) from lanes l, lateral (
                (select came from responses
                where lane = l.name and state = 'waiting' order by number limit 1)
                union all
                (select asked from errands
                where lane = l.name and answer is null order by number limit 1)
            ) first (since)
            where l.name <> all(:own)
            group by l.name order by min(first.since)
            """,
            own=own,
            takeover=self._takeover,
        )
        lanes = [lane for lane, _ in rows if self.wants(lane)]
        if lanes and any(frozen for _, frozen in rows):
            for lane in lanes:
                self._end_frozen(lane)
        while lanes and (found := self._first_free(lanes)):
            lane, left = found
            self._session = self._server.session
            self._own.add(lane)
            if not left:
                return
            self.leave([lane])
            lanes = lanes[lanes.index(lane) + 1 :]

    def _first_free(self, lanes: Sequence[str]) -> tuple[str, bool] | None:
        """The first lane of which the lock was to be had, and whether its owner left claims there.
        The locks are tried one by one, as far as the limit needs."""
        row = self._server.one(
            """
            with locked as materialized (
                select name from unnest(cast(:lanes as text[])) name
                where pg_try_advisory_lock(lane_key(name)) limit 1
            ), behind as materialized (
                select from (
                    select distinct r.session from responses r, locked
                    where r.lane = locked.name and r.state in ('claimed', 'ending')
                      and r.session is distinct from :me
                    offset 0
                ) others where gone(session, :takeover)
            ), noted as (
                update lanes l set session = :me, since = epoch() from locked
                where l.name = locked.name and not exists (select from behind)
            ) select name, exists (select from behind) from locked
            """,
            lanes=lanes,
            me=self._server.session,
            takeover=self._takeover,
        )
        return None if row is None else (row[0], row[1])

    def orphaned(self) -> bool:
        """Return true if a lane for this session has dead claims, or held ones without an owner."""
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
        return any(lane in own for lane in lanes) or bool(self.wanted(lanes))

    def _locked(self, lane: str) -> bool:
        row = self._server.one("select pg_try_advisory_lock(lane_key(:lane))", lane=lane)
        return bool(row and row[0])

    def _end_frozen(self, lane: str) -> bool:
        """Have the server end whoever holds the lock, if that one does not beat any more.  What it
        had in hand was not what froze it, so this is no death of its claims."""
        row = self._server.one(
            """
            select s.number, s.name, s.host from sessions s
            where s.beat < epoch() - :takeover
              and holder(session_key(s.number)) = holder(lane_key(:lane))
            """,
            takeover=self._takeover,
            lane=lane,
        )
        if row is None:
            return False
        self._server.run(  # first, as it may be frozen inside a transaction that locks rows
            "select pg_terminate_backend(holder(lane_key(:lane)), 2000)"
            " where holder(session_key(:session)) = holder(lane_key(:lane))",
            session=row[0],
            lane=lane,
        )
        self.drop_claims(row[0])
        _LOG.warning(
            "worker %s on %s did not beat for %g s, so its connection was ended: lane %s",
            row[1],
            row[2],
            self._takeover,
            lane,
        )
        return True

    def leave(self, lanes: Iterable[str]) -> None:
        """Let others own these."""
        for lane in set(lanes).intersection(self.own):
            self._server.run("select pg_advisory_unlock(lane_key(:lane))", lane=lane)
            self._own.discard(lane)

    def leave_idle(self, kept: Container[str]) -> None:
        """Let others own those in which nothing is in hand, or held, but the `kept` ones."""
        own = [lane for lane in self.own if lane not in kept]
        if own:
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


class Beat:
    """Says, on a connection and a thread of its own, that this process is not frozen."""

    def __init__(self, server: DatabaseServer, takeover: float) -> None:
        self._conninfo, self._name = server.conninfo, server.name
        self._pause = takeover / _BEATS
        self._stop = Event()
        self._session = server.session
        server.run(_BEAT, session=self._session)
        self._thread = Thread(target=self._run, name="patchq-beat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with (
                suppress(Fault, psycopg.Error),
                connect(self._conninfo, f"{self._name} beat") as connection,
            ):
                while not self._stop.wait(self._pause):
                    connection.execute(translated(_BEAT), {"session": self._session})
            self._stop.wait(self._pause)

    def stop(self) -> None:
        self._stop.set()

    def close(self) -> None:
        self.stop()
        self._thread.join(2.0)
