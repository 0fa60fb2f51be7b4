"""What a feeder hands to the database, and what comes back: rows by the tokens of its own claims.

A feeder keeps each claim until it has published the verdict itself.  So it may enter what it holds
as often as it likes: a token is entered once.  What a worker made since somebody on this machine
asked for it (a revert's batch) has such a token as well.  What is told of is a change of a row's
report that the feeder has not seen; it asks the database to flush before it believes one (`sync`),
since the worker that wrote it may not have waited for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from patchq.core.model.values import Generation, Problem
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.postgres.database import Database
from patchq.gate.report.schema import Report

_MOST = 256
_IDS = 1000
_BYTES = 4 * 1024 * 1024


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


class Entries:
    """The rows of the feeder with this name, on a connection of its own."""

    def __init__(
        self,
        database: str,
        feeder: str,
        belongs: Callable[[Database], None] = lambda database: None,
    ) -> None:
        self._database = Database(database, "feeder")
        self._feeder = feeder
        self._belongs = belongs

    def enter(self, claims: Iterable[tuple[Claim, str]]) -> None:
        """Enter the claims, each with its lane, durably; those that are there stay as they are."""
        for some in _portions(claims):
            self._database.run(
                """
                with flushed as materialized (
                    select set_config('synchronous_commit', 'on', true) as value
                ), v as materialized (
                    select * from unnest(
                        %(lanes)b::text[], %(names)b::bytea[], %(data)b::bytea[],
                        %(sizes)b::bigint[], %(choices)b::bytea[], %(problems)b::bytea[],
                        %(ids)b::text[], %(tokens)b::text[]
                    ) with ordinality
                        u (lane, name, data, size, choice, problem, id, token, place)
                ), known as (
                    insert into lanes (name) select distinct lane from v on conflict do nothing
                ), new as (
                    insert into responses
                        (lane, name, data, size, choice, problem, id, feeder, token)
                    select lane, name, data, size, choice, problem, id, %(feeder)s, token
                    from v order by place on conflict (feeder, token) do nothing returning lane
                ), told as (
                    select tell('came', lane)
                    from (select distinct lane from new) lanes
                ) select value, (select count(*) from told) from flushed
                """,
                lanes=[lane for _, lane in some],
                names=[os.fsencode(claim.source.name) for claim, _ in some],
                data=[claim.data for claim, _ in some],
                sizes=[claim.source.size for claim, _ in some],
                choices=[_coded(claim.choice) for claim, _ in some],
                problems=[_coded(_said(claim.problem)) for claim, _ in some],
                ids=[claim.id for claim, _ in some],
                tokens=[claim.token for claim, _ in some],
                feeder=self._feeder,
            )

    def know(self, ids: Sequence[str]) -> None:
        """Have these ids never given again: the feeder's queue gave them itself once."""
        self._belongs(self._database)
        for start in range(0, len(ids), _IDS):
            self._database.run(
                "insert into ids (id) select unnest(%s::text[]) on conflict do nothing",
                list(ids[start : start + _IDS]),
            )

    def open(self) -> None:
        """Connect now, so that what keeps it from that, or from entering, is told at once."""
        self._database.run("update responses set seen = seen where false")
        self._belongs(self._database)

    def changes(self) -> list[RowChange]:
        """What the feeder has not seen, in its order, some of it; all of it is durable."""
        rows = self._database.all(
            """
            select number, token, report, page, change from responses
            where feeder = %s and change > seen order by change limit %s
            """,
            self._feeder,
            _MOST,
        )
        if rows:
            self._database.flush()
        changes = []
        for number, token, report, page, change in rows:
            told = spool.report(report)
            if told is not None:
                changes.append(RowChange(number, token, told, page.decode(), change))
        return changes

    def response(self, change: RowChange) -> RowResponse:
        """What the row has for its response now."""
        [(name, data, answer)] = self._database.all(
            "select name, data, answer from responses where number = %s", change.number
        )
        asked = spool.decode(answer)
        return RowResponse(os.fsdecode(name), data, Generation.from_json(asked) if asked else None)

    def seen(self, changes: Sequence[RowChange]) -> None:
        """The feeder has published these."""
        self._database.run(
            """
            update responses r set seen = s.change
            from unnest(%s::bigint[], %s::bigint[]) s (number, change)
            where r.number = s.number and r.seen < s.change
            """,
            [change.number for change in changes],
            [change.change for change in changes],
        )

    def close(self) -> None:
        self._database.close()


def _portions(claims: Iterable[tuple[Claim, str]]) -> Iterator[list[tuple[Claim, str]]]:
    """As many at once as one statement carries well."""
    some: list[tuple[Claim, str]] = []
    size = 0
    for claim, lane in claims:
        if some and size + len(claim.data) > _BYTES:
            yield some
            some, size = [], 0
        some.append((claim, lane))
        size += len(claim.data)
    if some:
        yield some


def _coded(words: Mapping[str, Any] | None) -> bytes | None:
    return None if words is None else spool.encode(words)


def _said(problem: Problem | None) -> dict[str, str | None] | None:
    """Of what keeps a file from being read there is no more to say."""
    if problem is None:
        return None
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}
