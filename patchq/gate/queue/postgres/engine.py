"""The queue in PostgreSQL: many machines empty one inbox.

    waiting -> claimed -> (held -> ending ->) ended

No statement waits for the disk (`synchronous_commit = off`) but `sync`, which flushes everything
before it, whoever wrote it; so a group of verdicts shares one flush, as on one machine.

A lane is a target branch, and each has one owner at a time (`lanes`).  Whoever claims takes at most
one lane more than it has each time, and lets go of those in which it has nothing left before it
waits: so busy lanes spread over the workers by themselves.

A feeder keeps each claim until it has published the verdict itself.  So it may enter
what it holds as often as it likes: a token is entered once.  What a worker made since a process on
this machine asked for it (a revert's batch) has such a token as well.  A change of a report that
the feeder has not shown is flushed before it believes it, since the worker that wrote it may not
have waited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.errors import Fault
from patchq.gate.git import files
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.database import COLUMNS
from patchq.gate.queue.inbox import claim_of
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.queue.postgres.database import DatabaseServer
from patchq.gate.queue.postgres.lanes import Lanes, Waking, beat
from patchq.gate.report.schema import Report

_MOST = 256
_COMES = ("came", "asked")  # the words of notices that there is work in a lane


class RowChange(Struct, frozen=True):
    """The current report of a row, held or ended."""

    number: int
    token: str
    report: Report
    change: int


class PostgresQueue(QueueEngine):
    """The queue in the database to which the connection string leads.

    `name` is this process's for people; `lanes` are patterns of those that it may own, `lane_of`
    tells the lane of a response by its bytes and its name.  A process that `beats` counts as frozen
    after `takeover_seconds` without a beat.  `belongs` raises where the tables are not this
    repository's.  A `feeder` has no lanes, and the rows with its name.  The others are those of
    `StoreQueue`.
    """

    store: DatabaseServer

    def __init__(
        self,
        database: str,
        *,
        name: str = "patchq",
        lanes: Sequence[str] = ("*",),
        lane_of: Callable[[bytes, str], str] = lambda data, name: "",
        takeover_seconds: float = 10.0,
        beats: bool = False,
        is_known: Callable[[str], bool] = lambda id: False,
        belongs: Callable[[DatabaseServer], None] = lambda database: None,
        feeder: str | None = None,
    ) -> None:
        super().__init__(DatabaseServer(database, name, begin=self._begin_session), is_known)
        self.lanes = Lanes(self.store, lanes, takeover_seconds)
        self.lane_of = lane_of
        self._takeover = takeover_seconds
        self._beats = beats
        self._belongs = belongs
        self.waking = Waking(self.store)
        self._ahead = 0.0  # the seconds by which this machine's clock is ahead of the database's
        self._feeder = feeder
        self._stop_beat: Callable[[], None] = lambda: None

    # Who it is.

    def open(self) -> int:
        return self.store.session

    def _begin_session(self, number: int) -> None:
        self._belongs(self.store)
        self._session = number
        self._ahead = self.store.ahead()
        self._own.clear()
        self.lanes.forget()
        self.store.run("delete from sessions where number <> :me and not alive(number)", me=number)
        self._stop_beat()
        if self._beats:
            self._stop_beat = beat(self.store, number, self._takeover)

    def release(self) -> None:
        if not self.store.lost:
            self._leave_claims()
            self.lanes.leave()
        self._own.clear()

    def close(self) -> None:
        self._stop_beat()
        if not self.store.lost:
            with suppress(Fault):  # whoever looks next is to see it at once
                self.store.run("select pg_advisory_unlock_all()")
        self.store.close()

    # What comes.

    def recover(self) -> list[Claim]:
        for lane in self.lanes.orphaned():
            self.lanes.take(lane)
        return super().recover()

    def claim(self, limit: int) -> list[Claim]:
        """Claim responses of own lanes.

        The claims of a dead process in a lane are recovered first.
        """
        if limit <= 0:
            return []
        me = self.open()
        self.lanes.take_one_more()
        rows = self.store.all(
            f"""
            with free as materialized (
                select lane from unnest(cast(:lanes as text[])) lane where not exists (
                    select from responses r where r.lane = lane.lane
                    and state in ('claimed', 'ending') and session is distinct from :me
                    and gone(session, :takeover)
                )
            ), taken as (
                update responses set state = 'claimed', session = :me
                where number in (
                    select number from responses
                    where state = 'waiting' and lane in (select lane from free)
                    order by number limit :limit
                )
                returning {COLUMNS}
            ) select * from taken order by number
            """,
            me=me,
            lanes=self.lanes.own,
            limit=limit,
            takeover=self._takeover,
        )
        self._own.update(row[1] for row in rows)
        return self._read(rows)

    def serves(self, claim: Claim) -> bool:
        return claim.lane in self.lanes.own

    def lane(self, claim: Claim) -> str:
        """Return the branch that a person chose, or that the response names."""
        chosen = claim.choice and claim.choice["target"]
        return str(chosen or self.lane_of(claim.data, claim.source.name))

    def _place(self, claim: Claim) -> tuple[str, str | None]:
        lane = self.lane(claim)
        # Others are to know that there is such a lane.
        self.store.run("insert into lanes (name) values (:lane) on conflict do nothing", lane=lane)
        return lane, self._feeder

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        self.enter([claim_of(spool.new_token(), name, data, len(data))])
        return name

    def sync(self, *places: Path) -> None:
        if places:
            files.barrier(*places)
        self.store.flush()

    def _show(self, numbers: Sequence[int]) -> None:
        if numbers:
            self.store.run("select tell('verdict', '')")

    # What waits for review.

    def proposals(self, known: Collection[str] = ()) -> dict[str, str | None]:
        self.open()
        rows = self.store.all(
            """
            select id, proposed from responses where proposed is not null and lane = any(:lanes)
            union all
            select k.id, null from unnest(cast(:known as text[])) k (id) where not exists (
                select from responses r where r.id = k.id and r.proposed is not null
            )
            """,
            lanes=self.lanes.own,
            known=list(known),
        )
        return dict(rows)

    def mark(self, marks: Mapping[str, str]) -> None:
        self.store.each(
            "update responses set proposed = :commit where id = :id and proposed is not null",
            [{"id": id, "commit": commit} for id, commit in marks.items()],
        )
        self.sync()

    def proposing(self) -> list[str]:
        """Return the lanes in which proposals wait, of those that this process may own."""
        lanes = self.store.column(
            "select distinct lane from responses where proposed is not null order by lane"
        )
        return list(filter(self.lanes.wants, lanes))

    # What people ask for.

    def pass_on(self, id: str, words: Mapping[str, Any]) -> bool:
        row = self.store.one(
            """
            with new as (
                insert into errands (lane, words, asked)
                select lane, :words, epoch() from responses where id = :id and lane <> all(:own)
                returning lane
            ) select tell('asked', lane) from new
            """,
            words=spool.encode(words),
            id=id,
            own=self.lanes.own,
        )
        return row is not None

    def asked(self) -> list[tuple[int, dict[str, Any], bool]]:
        """Take the open commands for own lanes.

        Each has its number, its words, and True if it was begun before; each is to be answered by
        `done`.
        """
        rows = self.store.all(
            """
            with free as (
                select number, session is not null as again from errands
                where lane = any(:lanes) and answer is null
                  and session is distinct from :me and not coalesce(alive(session), false)
            ), taken as (
                update errands d set session = :me from free where d.number = free.number
                returning d.number, d.words, free.again
            ) select number, words, again from taken order by number
            """,
            me=self.open(),
            lanes=self.lanes.own,
        )
        return [(number, spool.decode(words) or {}, again) for number, words, again in rows]

    def done(self, number: int, answer: Mapping[str, Any]) -> None:
        """Answer a command, once what it did is durable."""
        self.sync()
        self.store.run(
            "update errands set answer = :answer where number = :number and session = :me",
            answer=spool.encode(answer),
            number=number,
            me=self.open(),
        )

    @contextmanager
    def acting_for(self, feeder: str | None) -> Iterator[None]:
        """Have what is adopted or submitted in the block belong to that feeder."""
        before, self._feeder = self._feeder, feeder
        try:
            yield
        finally:
            self._feeder = before

    def feeder_of(self, id: str) -> str | None:
        return self._column(id, "feeder")

    # Waiting.

    def wait(self, seconds: float, bell: Bell) -> bool:
        """Wait for a notice, a ring or the time; return True for a notice.

        Lanes in which nothing is left are free for others meanwhile.
        """
        self.lanes.leave_idle()
        return self.waking.wait(seconds, self._concerns, bell)

    def _concerns(self, word: str, lane: str) -> bool:
        return self.lanes.wants(lane) if word in _COMES else bool(self._feeder or self.lanes.own)

    def clock(self) -> float:
        """Seconds since the epoch by the database's clock."""
        return time.time() - self._ahead

    # What a feeder does.

    def enter(self, claims: Iterable[Claim]) -> None:
        """Enter the claims durably; those that are there stay as they are."""
        lanes = set[str]()
        with self.together():
            for claim in claims:
                lanes.add(self.lane(claim))
                if claim.id:  # it was known until now, and comes with its bytes
                    self.store.run(
                        "delete from responses where token = :token", token=f"known-{claim.id}"
                    )
                token = f"{claim.token}.{self._feeder}" if self._feeder else claim.token
                self._enter(replace(claim, token=token), state="waiting")
            self.store.each("select tell('came', :lane)", [{"lane": lane} for lane in lanes])
        self.store.flush()

    def changes(self) -> list[RowChange]:
        """Return the oldest changes that the feeder has not shown, all durable."""
        rows = self.store.all(
            "select r.number, token, data, change from responses r"
            " join papers p on p.number = r.number and p.kind = 'report'"
            " where shown = 0 and feeder = :feeder and state in ('ended', 'held', 'ending')"
            " order by change limit :most",
            feeder=self._feeder,
            most=_MOST,
        )
        if rows:
            self.store.flush()
        return [
            RowChange(number, token.removesuffix(f".{self._feeder}"), report, change)
            for number, token, data, change in rows
            if (report := spool.report(data))
        ]

    def response(self, change: RowChange) -> Claim:
        """Return the row's response as it is now, with a request's answer."""
        [claim] = self._claims("number = :number", number=change.number)
        return claim

    def seen(self, changes: Sequence[RowChange]) -> None:
        """Mark these changes as shown."""
        self.store.each(
            "update responses set shown = 1 where number = :number and change = :change",
            [{"number": change.number, "change": change.change} for change in changes],
        )
