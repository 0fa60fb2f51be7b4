"""What a feeder hands to the database, and what comes back: rows by the tokens of its own claims.

A feeder keeps each claim until it has published the verdict itself.  So it may enter what it holds
as often as it likes: a token is entered once.  What a worker made since a process on this machine
asked for it (a revert's batch) has such a token as well.  A change of a report that the feeder has
not shown is flushed before it believes it, since the worker that wrote it may not have waited.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.json import encode

from patchq.core.model.values import Generation
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.batches import KnownBatches
from patchq.gate.queue.postgres.database import DatabaseServer
from patchq.gate.report.schema import Report

_MOST = 256
_IDS = 1000


class RowChange(Struct, frozen=True):
    """The report of a row as it is now: of a held batch, a verdict, or a later state."""

    number: int
    token: str
    report: Report
    page: str
    change: int


class RowResponse(Struct, frozen=True):
    """A response in the database; of a request, what a model answered, if it has."""

    name: str
    data: bytes
    generation: Generation | None


class Entries(KnownBatches):
    """The rows of the feeder with this name, on a connection of its own."""

    store: DatabaseServer

    def __init__(
        self,
        database: str,
        feeder: str,
        belongs: Callable[[DatabaseServer], None] = lambda database: None,
    ) -> None:
        super().__init__(DatabaseServer(database, "feeder"))
        self._feeder = feeder
        self._belongs = belongs

    def enter(self, claims: Iterable[tuple[Claim, str]]) -> None:
        """Enter the claims, each with its lane, durably; those that are there stay as they are."""
        entered = [(self._token(claim), claim, lane) for claim, lane in claims]
        lanes = [{"lane": lane} for lane in sorted({lane for *_, lane in entered})]
        with self.store.transaction():
            self.store.run("set local synchronous_commit = on")
            self.store.each("insert into lanes (name) values (:lane) on conflict do nothing", lanes)
            self.store.each(
                "delete from responses where token = :token",
                [{"token": f"known-{claim.id}"} for _, claim, _ in entered if claim.id],
            )
            self.store.each(
                "insert into responses"
                " (token, lane, feeder, came, name, size, sha256, problem, state, id)"
                " values (:token, :lane, :feeder, epoch(), :name, :size, :sha256, :problem,"
                " 'waiting', (select cast(:id as text)"
                " where not exists (select from responses r where r.id = :id)))"
                " on conflict (token) do nothing",
                [
                    {
                        "token": token,
                        "lane": lane,
                        "feeder": self._feeder,
                        "name": os.fsencode(claim.source.name),
                        "size": claim.source.size,
                        "sha256": claim.source.sha256 if claim.data else None,
                        "problem": encode(claim.problem).decode() if claim.problem else None,
                        "id": claim.id,
                    }
                    for token, claim, lane in entered
                ],
            )
            self.store.each(
                "insert into papers (number, kind, data) select number, :kind, :data from responses"
                " where token = :token and state = 'waiting' on conflict do nothing",
                [
                    {"token": token, "kind": kind, "data": data}
                    for token, claim, _ in entered
                    for kind, data in _papers(claim).items()
                ],
            )
            self.store.each("select tell('came', :lane)", lanes)

    def know(self, ids: Sequence[str]) -> None:
        """Have these ids never given again: the feeder's queue gave them itself once."""
        self._belongs(self.store)
        for start in range(0, len(ids), _IDS):
            self.store.run(
                "insert into responses (token, name, size, state, id)"
                " select 'known-' || id, '', 0, 'gone', id"
                " from unnest(cast(:ids as text[])) id on conflict do nothing",
                ids=list(ids[start : start + _IDS]),
            )

    def open(self) -> None:
        """Connect now, so that a fault which keeps it from entering is raised at once."""
        self.store.run("update responses set shown = shown where false")
        self._belongs(self.store)

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
                page = papers[number].get("page", b"").decode()
                changes.append(RowChange(number, self._own_token(token), report, page, change))
        return changes

    def response(self, change: RowChange) -> RowResponse:
        """Return what the row has for its response now."""
        [name] = self.store.column(
            "select name from responses where number = :number", number=change.number
        )
        papers = self._papers(change.number)
        answer = spool.decode(papers.get("answer"))
        generation = Generation.from_json(answer) if answer else None
        return RowResponse(os.fsdecode(name), papers.get("body", b""), generation)

    def seen(self, changes: Sequence[RowChange]) -> None:
        """Mark these changes as shown."""
        self.store.each(
            "update responses set shown = 1 where number = :number and change = :change",
            [{"number": change.number, "change": change.change} for change in changes],
        )

    def close(self) -> None:
        self.store.close()

    def _token(self, claim: Claim) -> str:
        """Return the token in the database, where other feeders have theirs."""
        return f"{claim.token}.{self._feeder}"

    def _own_token(self, token: str) -> str:
        return token.removesuffix(f".{self._feeder}")


def _papers(claim: Claim) -> dict[str, bytes]:
    papers = {} if claim.problem else {"body": claim.data}
    if claim.choice is not None:
        papers["choice"] = spool.encode(claim.choice)
    return papers
