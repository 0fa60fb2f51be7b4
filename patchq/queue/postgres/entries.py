"""What a feeder hands to the database, and what comes back: rows by the tokens of its own claims.

A feeder keeps each claim until it has published the verdict itself.  So it may enter what it holds
as often as it likes: a token is entered once.  What a worker made since somebody on this machine
asked for it (a revert's batch) has such a token as well.  What is told of is a change of a row's
report that the feeder has not seen; it asks the database to flush before it believes one (`sync`),
since the worker that wrote it may not have waited for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchq.model.report import Report
from patchq.model.values import Problem
from patchq.queue import Claim, spool
from patchq.queue.postgres.database import Database

_MOST = 256
_IDS = 1000


@dataclass(frozen=True, slots=True)
class RowChange:
    """The report of a row as it is now: of a held batch, a verdict, or a later state."""

    number: int
    token: str
    report: Report
    page: str
    change: int


class Entries:
    """The rows of the feeder with this name, on a connection of its own."""

    def __init__(self, database: str, feeder: str) -> None:
        self._database = Database(database, "feeder")
        self._feeder = feeder

    def enter(self, claims: Iterable[tuple[Claim, str]]) -> None:
        """Enter the claims, each with its lane, durably; those that are there stay as they are."""
        with self._database.transaction():
            self._database.run("set local synchronous_commit = on")
            for claim, lane in claims:
                self._database.run(
                    "insert into lanes (name) values (%s) on conflict do nothing", lane
                )
                self._database.run(
                    """
                    with new as (
                        insert into responses
                            (lane, name, data, size, choice, problem, id, feeder, token)
                        values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
                        on conflict (feeder, token) do nothing returning lane
                    ) select pg_notify('patchq', 'came ' || lane) from new
                    """,
                    lane,
                    os.fsencode(claim.source.name),
                    claim.data,
                    claim.source.size,
                    None if claim.choice is None else spool.encode(claim.choice),
                    None if claim.problem is None else spool.encode(_said(claim.problem)),
                    claim.id,
                    self._feeder,
                    claim.token,
                )

    def know(self, ids: Sequence[str]) -> None:
        """Have these ids never given again: the feeder's queue gave them itself once."""
        for start in range(0, len(ids), _IDS):
            self._database.run(
                "insert into ids (id) select unnest(%s::text[]) on conflict do nothing",
                list(ids[start : start + _IDS]),
            )

    def open(self) -> None:
        """Connect now, so that what keeps it from that is told at once."""
        self._database.run("select")

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
            with self._database.transaction():
                self._database.run("set local synchronous_commit = on")
                self._database.run("select pg_logical_emit_message(true, 'patchq', '')")
        changes = []
        for number, token, report, page, change in rows:
            told = spool.report(report)
            if told is not None:
                changes.append(RowChange(number, token, told, page.decode(), change))
        return changes

    def response(self, change: RowChange) -> tuple[str, bytes]:
        """What a row was made from that no claim here entered: its name and its bytes."""
        [(name, data)] = self._database.all(
            "select name, data from responses where number = %s", change.number
        )
        return os.fsdecode(name), data

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


def _said(problem: Problem) -> dict[str, str | None]:
    """Of what keeps a file from being read there is no more to say."""
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}
