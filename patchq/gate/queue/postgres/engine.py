"""The queue's protocol on PostgreSQL's tables.

    waiting -> claimed -> (held -> ending ->) ended

Each step is one statement, and each says in its condition that the response is still this session's
(`session`): a process whose claims were taken over changes nothing.  No statement waits for the
disk (`synchronous_commit = off`) but `sync`, which flushes everything before it, whoever wrote it;
so a group of verdicts shares one flush, as in a directory.

A lane is a target branch, and each has one owner at a time (`lanes`).  Whoever claims takes at most
one lane more than it has each time, and lets go of those in which it has nothing left before it
waits: so busy lanes spread over the workers by themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from psycopg.rows import TupleRow

from patchq.core.model.values import Generation
from patchq.gate.errors import Fault, QueueLocked
from patchq.gate.git import files
from patchq.gate.queue import Claim, Parcel, spool
from patchq.gate.queue.inbox import Snapshot, claim_of, free_names
from patchq.gate.queue.postgres import errands, proposals, verdicts
from patchq.gate.queue.postgres.archive import Archive
from patchq.gate.queue.postgres.database import Database
from patchq.gate.queue.postgres.ids import Ids
from patchq.gate.queue.postgres.lanes import Lanes
from patchq.gate.queue.postgres.rows import CAME, COLUMNS, claim_of_row, number_of, token
from patchq.gate.queue.postgres.session import QueueSession
from patchq.gate.queue.postgres.verdicts import MINE_TO_END, RowVerdict, Together
from patchq.gate.queue.postgres.waking import Waking
from patchq.gate.report.schema import Report

_KNOWN = """
    insert into sources (sha256, id) select %(sha256)s, id from done
    where %(size)s > 0 on conflict do nothing
"""
_COMES = ("came", "asked")
"""What is told of a lane that there is work in."""


class PostgresQueue(Archive):
    """The queue in the database to which the connection string leads.

    `name` is this process's for people; `lanes` are patterns of those that it may own, `lane_of`
    tells the lane of a response by its bytes and its name.  Who `beats` for longer than
    `takeover_seconds` not is taken for frozen.  `belongs`
    raises where the tables are not this repository's.  The others are those of `DirectoryQueue`.
    """

    def __init__(
        self,
        database: str,
        *,
        name: str = "patchq",
        lanes: Sequence[str] = ("*",),
        lane_of: Callable[[bytes, str], str] = lambda data, name: "",
        takeover_seconds: float = 10.0,
        beats: bool = False,
        response_bytes: int = 2 * 1024 * 1024,
        is_known: Callable[[str], bool] = lambda id: False,
        belongs: Callable[[Database], None] = lambda database: None,
    ) -> None:
        super().__init__(Database(database, name))
        self._lanes = Lanes(self._database, lanes, takeover_seconds)
        self._lane_of = lane_of
        self._takeover = takeover_seconds
        self._session = QueueSession(self._database, takeover_seconds, beats=beats, belongs=belongs)
        self._ids = Ids(self._database, is_known)
        self._limit = response_bytes
        self._pinned: set[str] = set()
        self._waking = Waking(self._database)
        self._together: Together | None = None
        self._ahead: float | None = None
        self._feeder: str | None = None

    # Who it is.

    @property
    def name(self) -> str:
        return self._database.name

    def open(self) -> None:
        """Connect now, so that what keeps it from that is told at once."""
        self._session.number()

    def acquire(self, target: str | None = None) -> None:
        """Own the lane of what names no branch, and keep it."""
        lane = target or ""
        self._session.number()
        if not self._lanes.take(lane):
            raise QueueLocked(
                f"another process works on the lane {lane!r} already", "let it do the work"
            )
        self._pinned.add(lane)

    def release(self, fault: Fault | None = None) -> None:
        self._pinned.clear()
        if self._session.drop():
            self._lanes.leave(self._lanes.own)
        if fault is not None:  # a new session recovers what this one adopted or took to answer
            self._database.close()

    def close(self) -> None:
        self._session.close()
        if not self._database.lost:
            with suppress(Fault):  # whoever looks next is to see it at once
                self._database.run("select pg_advisory_unlock_all()")
        self._database.close()
        self._waking.close()

    def recover(self) -> list[Claim]:
        me = self._session.number()
        for lane in self._lanes.wanted(
            self._database.column(
                "select distinct lane from responses where state in ('claimed', 'held', 'ending')"
                " and session is distinct from %s and gone(session, %s)",
                me,
                self._takeover,
            )
        ):
            self._lanes.take(lane)
        rows = self._database.all(
            f"""
            with dead as (
                update responses set
                    state = case state when 'ending' then 'held' else state end,
                    session = case state when 'claimed' then %(me)s end,
                    adopted = false, deaths = deaths + (session is not null)::integer
                where lane = any(%(lanes)s) and state in ('claimed', 'held', 'ending')
                  and number <> all(%(own)s) and session is distinct from %(me)s
                  and not alive(session)
                returning {COLUMNS}
            ) select * from dead order by number
            """,
            me=me,
            lanes=self._lanes.own,
            own=list(self._session.own),
        )
        self._session.own.update(row[0] for row in rows)
        return self._claims(rows)

    def attempt(self, claims: Sequence[Claim]) -> None:
        pass  # `recover` counts the sessions that ended

    def claim(self, limit: int) -> list[Claim]:
        if limit <= 0:
            return []
        me = self._session.number()
        self._lanes.take_one_more()
        lanes = self._lanes.own
        if not lanes:
            return []
        rows = self._database.all(
            f"""
            with taken as (
                update responses set state = 'claimed', session = %(me)s
                where number in (
                    select number from responses
                    where state = 'waiting' and lane = any(%(lanes)s)
                    order by number limit %(limit)s
                )
                returning {COLUMNS}
            ) select * from taken order by number
            """,
            me=me,
            lanes=lanes,
            limit=limit,
        )
        self._session.own.update(row[0] for row in rows)
        return self._claims(rows)

    def orphaned(self) -> bool:
        """Whether somebody left claims that this process may recover, or held ones alone in a lane
        that nobody looks at any more."""
        self._session.number()
        return self._lanes.orphaned()

    def serves(self, claim: Claim) -> bool:
        """Whether this process decides on it once it is held."""
        return self._lane(claim) in self._lanes.own

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        self._session.number()
        return errands.pass_on(self._database, self._lanes.own, id, words)

    # What waits for review.

    def proposals(self, known: Collection[str] = ()) -> dict[str, str | None]:
        self._session.number()
        return proposals.found(self._database, self._lanes.own, known)

    def mark(self, marks: Mapping[str, str]) -> None:
        proposals.mark(self._database, marks)
        self.sync()

    def proposing(self) -> list[str]:
        """The lanes in which something waits for review, of those that this process may own."""
        return list(filter(self._lanes.wants, proposals.lanes(self._database)))

    def take(self, lane: str) -> bool:
        """Own the lane until nothing is left to do in it, unless another one owns it, or somebody
        left claims there, which are recovered first."""
        self._session.number()
        return self._lanes.take_free(lane)

    @property
    def own(self) -> list[str]:
        """The lanes that this process owns now."""
        return self._lanes.own

    # What people ask for.

    def asked(self) -> list[tuple[int, Mapping[str, Any], bool]]:
        """What people want done in the lanes that this process owns; what it takes it answers.
        Each with whether somebody has begun it before."""
        me, lanes = self._session.number(), self._lanes.own
        return errands.asked(self._database, me, lanes) if lanes else []

    def done(self, number: int, answer: Mapping[str, Any]) -> None:
        """Tell who asked what came of it, once that is durable."""
        self.sync()
        errands.answer(self._database, self._session.number(), number, answer)

    def sort_by(self, lane_of: Callable[[bytes, str], str]) -> None:
        self._lane_of = lane_of

    @contextmanager
    def acting_for(self, feeder: str | None) -> Iterator[None]:
        """What is adopted or submitted in the block is told to that feeder, as what it entered."""
        before, self._feeder = self._feeder, feeder
        try:
            yield
        finally:
            self._feeder = before

    def feeder_of(self, id: str) -> str | None:
        found = self._database.column("select feeder from responses where id = %s", id)
        return next(iter(found), None)

    def _fed(self) -> tuple[str | None, str | None]:
        """For whom a new row is, and by which token."""
        return self._feeder, None if self._feeder is None else spool.Tokens().next()

    # Waiting.

    def wait(self, seconds: float) -> bool:
        """Wait until something may have changed, or `ring` is called, for so long at most; lanes in
        which nothing is left are free for others meanwhile.  Whether something was told."""
        self._session.number()
        self._lanes.leave_idle(kept=self._pinned)
        return self._waking.wait(seconds, self._concerns)

    def _concerns(self, word: str, lane: str) -> bool:
        """What comes into a lane that it may own; and what is decided, which may be what something
        waits for that it holds."""
        return self._lanes.wants(lane) if word in _COMES else bool(self._lanes.own)

    def ring(self) -> None:
        """End a wait; from any thread, and from handlers of signals."""
        self._waking.ring()

    def clock(self) -> float:
        """Seconds since the epoch by the database's clock."""
        if self._ahead is None:
            row = self._database.one("select extract(epoch from clock_timestamp())::float8")
            self._ahead = (row[0] if row else time.time()) - time.time()
        return time.time() + self._ahead

    def depth(self) -> int:
        row = self._database.one("select count(*) from responses where state = 'waiting'")
        return int(row[0]) if row else 0

    def unsettled(self) -> float | None:
        return None

    # A claim's life.

    def reserve(self, claim: Claim, wanted: str) -> str:
        return self._ids.reserve(claim, wanted)

    def by_source(self, sha256: str) -> Sequence[str]:
        known = self._ids.made_from(sha256)
        return super().by_source(sha256) if known is None else known

    def answer(self, claim: Claim, data: bytes, generation: Generation) -> Claim:
        self._changed(
            claim,
            """
            update responses set data = %(data)s, size = %(size)s, answer = %(answer)s
            where number = %(number)s and session = %(me)s returning number
            """,
            data=data,
            size=len(data),
            answer=spool.encode(generation.to_json()),
        )
        self.sync()
        return claim.answered(data, generation)

    @contextmanager
    def together(self) -> Iterator[None]:
        self._together = Together()
        try:
            yield
            self._record_together()
        finally:
            self._together = None

    def _record_together(self) -> None:
        some, me = self._together, self._session.number()
        if some is not None:
            self._together = Together()
            verdicts.intend(self._database, me, some.intended)
            verdicts.publish(self._database, me, some.true)
            self._session.own.difference_update(number_of(verdict.claim) for verdict in some.true)

    def intend(
        self,
        claim: Claim,
        report: Report,
        markdown: str | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        self._check(claim)
        verdict = RowVerdict(claim, report, markdown or "", parcel() if parcel else None)
        if self._together is not None and not claim.held:
            self._together.intended.append(verdict)
        else:
            verdicts.intend(self._database, self._session.number(), [verdict])

    def publish(self, claim: Claim, report: Report, markdown: str) -> None:
        self._check(claim)
        verdict = RowVerdict(claim, report, markdown)
        if self._together is not None:
            self._together.true.append(verdict)
        else:
            verdicts.publish(self._database, self._session.number(), [verdict])
            self._session.own.discard(number_of(claim))

    def hold(self, claim: Claim, report: Report, markdown: str) -> None:
        self._record_together()
        self._changed(
            claim,
            f"""
            with done as (
                update responses r set state = 'held', intended = null, parcel = null,
                    report = %(report)s, page = %(page)s, id = %(id)s,
                    change = nextval('changes'), deaths = 0,
                    session = case when adopted then session end,
                    held_since = coalesce(held_since, clock_timestamp())
                where number = %(number)s and ({MINE_TO_END})
                returning number, id, lane
            ), noted as ({_KNOWN}) select number, tell('held', lane) from done
            """,
            report=spool.encode(report),
            page=markdown.encode("utf-8", "replace"),
            id=report.id,
            sha256=claim.source.sha256,
            size=len(claim.data),
        )

    def held(self) -> list[Claim]:
        rows = self._database.all(
            f"""
            select {COLUMNS} from responses
            where state in ('held', 'ending')
              and (not adopted or session = %s or not alive(session))
            order by number
            """,
            self._session.number(),
        )
        return self._claims(rows)

    def adopt(self, data: bytes, name: str, choice: Mapping[str, Any] | None = None) -> Claim:
        me, lane = self._session.number(), self._lane_of(data, name)
        self._lanes.enter(lane)
        row = self._database.one(
            f"""
            insert into responses
                (lane, name, data, size, state, session, adopted, choice, feeder, token)
            values (%s, %s, %s, %s, 'claimed', %s, true, %s, %s, %s) returning number, {CAME}
            """,
            lane,
            os.fsencode(name),
            data,
            len(data),
            me,
            None if choice is None else spool.encode(choice),
            *self._fed(),
        )
        assert row
        self._session.own.add(row[0])
        self.sync()
        body = Snapshot(data, len(data))
        return claim_of(token(*row), name, body, request=False, choice=choice)

    def sync(self, *places: Path) -> None:
        """See `QueueEngine.sync`: one commit that waits for the disk, with something to flush."""
        if places:
            files.barrier(*places)
        self._database.flush()

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        lane, size = self._lane_of(data, name), len(data)
        self._lanes.enter(lane)
        free = self._free(name)
        self._database.run(
            """
            with new as (
                insert into responses (lane, name, data, size, feeder, token)
                values (%s, %s, %s, %s, %s, %s) returning lane
            ) select tell('came', lane) from new
            """,
            lane,
            os.fsencode(free),
            data if size <= self._limit else b"",
            size,
            *self._fed(),
        )
        if flush:
            self.sync()
        return free

    def _free(self, name: str) -> str:
        """A name that nothing has which waits; two who ask at once may get the same one, and then
        two responses have it, as when one came after the other."""
        taken = {
            os.fsdecode(row)
            for row in self._database.column("select name from responses where state = 'waiting'")
        }
        names = free_names(name, spool.Tokens().next())
        return next(name for name in names if name not in taken)

    def _claims(self, rows: Iterable[TupleRow]) -> list[Claim]:
        return [claim_of_row(row, self._limit) for row in rows]

    def _lane(self, claim: Claim) -> str | None:
        row = self._database.one("select lane from responses where number = %s", number_of(claim))
        return row[0] if row else None

    def _changed(self, claim: Claim, statement: Any, **values: object) -> None:
        """Change the claim's row; raises where it is not this process's (any more)."""
        self._check(claim)
        me = self._session.number()
        changed = self._database.column(statement, number=number_of(claim), me=me, **values)
        verdicts.check([claim], changed)

    def _check(self, claim: Claim) -> None:
        """Raise where the session has ended in which the claim was taken."""
        self._ids.forget()
        if self._session.lost and not claim.held:
            raise verdicts.lost(claim)
