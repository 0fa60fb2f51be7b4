"""The side of a feeder: what it hands to the database, and what comes back for it.

A feeder keeps each claim until it has published the verdict itself.  So it may enter what it holds
as often as it likes: a token is entered once.  What a worker made since a process on this machine
asked for it (a revert's batch) has such a token as well.  A change of a report that the feeder has
not shown is flushed before it believes it, since the worker that wrote it may not have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.queue import Claim, spool
from patchq.gate.queue.postgres.database import DatabaseServer
from patchq.gate.queue.postgres.engine import PostgresQueue
from patchq.gate.queue.schema import COLUMNS
from patchq.gate.report.schema import Report

_MOST = 256


class RowChange(Struct, frozen=True):
    """The report of a row as it is now: of a held batch, a verdict, or a later state."""

    number: int
    token: str
    report: Report
    page: str
    change: int


class Entries(PostgresQueue):
    """The rows of the feeder with this name, whose tokens have it at their end there."""

    def __init__(
        self,
        database: str,
        feeder: str,
        lane_of: Callable[[bytes, str], str] = lambda data, name: "",
        belongs: Callable[[DatabaseServer], None] = lambda database: None,
    ) -> None:
        super().__init__(database, name="feeder", lane_of=lane_of, belongs=belongs)
        self._feeder = feeder

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
                there = replace(claim, token=f"{claim.token}.{self._feeder}")
                self._enter(there, state="waiting")
            self.store.each("select tell('came', :lane)", [{"lane": lane} for lane in lanes])
        self.store.flush()

    def know(self, ids: Sequence[str]) -> None:
        """Have these ids never given again: the feeder's queue gave them itself once."""
        self._me()
        self.store.run(
            "insert into responses (token, name, size, state, id)"
            " select 'known-' || id, '', 0, 'gone', id"
            " from unnest(cast(:ids as text[])) id on conflict do nothing",
            ids=list(ids),
        )

    def changes(self) -> list[RowChange]:
        """Return the oldest changes that the feeder has not shown; all of them are durable."""
        rows = self.store.all(
            "select number, token, change from responses where shown = 0 and feeder = :feeder"
            " and state in ('ended', 'held', 'ending') order by change limit :most",
            feeder=self._feeder,
            most=_MOST,
        )
        if rows:
            self.store.flush()
        changes, papers = [], self.store.papers([row[0] for row in rows])
        for number, token, change in rows:
            report = spool.report(papers[number].get("report"))
            if report is not None:
                page, own = papers[number].get("page", b""), token.removesuffix(f".{self._feeder}")
                changes.append(RowChange(number, own, report, page.decode(), change))
        return changes

    def response(self, change: RowChange) -> Claim:
        """Return what the row has for its response now; of a request, with the answer."""
        [row] = self.store.all(
            f"select {COLUMNS} from responses where number = :number", number=change.number
        )
        return self._claim(row)

    def seen(self, changes: Sequence[RowChange]) -> None:
        """Mark these changes as shown."""
        self.store.each(
            "update responses set shown = 1 where number = :number and change = :change",
            [{"number": change.number, "change": change.change} for change in changes],
        )

    def _concerns(self, word: str, lane: str) -> bool:
        return word == "verdict"
