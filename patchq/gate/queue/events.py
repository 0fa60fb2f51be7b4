"""Events: what happened to batches, in its order, for everybody who follows the queue.

An event is written in the transaction of the change that it tells of.  Its number is the time in
nanoseconds, or one more than the number before it where that is larger; so numbers go on after a
restart, a store that was made again, or a clock that was set.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from patchq.gate.queue import store
from patchq.gate.queue.database import EVENT, Database, Row
from patchq.gate.queue.store import Store
from patchq.gate.report.schema import EventKind, Moment, Report, kind_of, waits_for_its_agent

SCHEMA = "patchq.event/1"
BEFORE = "events.before"  # the key of the number up to which events were removed
_MOST_CODES = 10
_FIRST = "0" * 16
_COLUMNS = "number, batch, kind, facts"


class Event(TypedDict):
    """One change of state, `patchq.event/1`; what is not known is null or empty."""

    schema: str
    id: str
    at: dict[str, Any]
    kind: EventKind
    batch: str
    state: str | None
    source: str | None
    agent: str | None
    target: str | None
    branch: str | None
    commit: str | None
    other: str | None
    codes: Sequence[str]


def differs(before: Report | None, after: Report) -> bool:
    """Return True if the step from one report to the next is an event.

    Each request for changes is one.
    """
    return _sign(before) != _sign(after)


def _sign(report: Report | None) -> tuple[EventKind | None, Moment | None]:
    asked = report.review if report and waits_for_its_agent(report) else None
    return kind_of(report) if report else None, asked.at if asked else None


def add(database: Database, batch: str, kind: str) -> None:
    """Add an event of a batch that has no report yet."""
    database.run(
        f"insert into events (number, batch, kind) values ({EVENT}, :batch, :kind)",
        batch=batch,
        kind=kind,
    )


def add_verdict(
    database: Database, report: Report, number: int, before: Report | None = None
) -> None:
    """Add the event that a report tells of, under a number from `event_number`."""
    database.run(
        "insert into events (number, batch, kind, facts) values (:number, :batch, :kind, :facts)",
        number=number,
        batch=report.id,
        kind=str(kind_of(report, before)),
        facts=json.dumps(_facts(report), separators=(",", ":")),
    )


def _facts(report: Report) -> dict[str, Any]:
    codes = dict.fromkeys(problem.code for problem in report.problems)
    facts = {
        "source": report.source.name,
        **{key: getattr(report, key) for key in ("state", "agent", "target", "branch", "commit")},
        "other": report.duplicate_of,
        "codes": list(codes)[:_MOST_CODES],
    }
    return {key: value for key, value in facts.items() if value}


def trim(database: Database, number: int) -> None:
    """Remove the events up to that number."""
    if database.all("delete from events where number <= :number returning number", number=number):
        database.remember(BEFORE, str(number))


def _event(row: Row) -> Event:
    number, batch, kind, text = row
    facts, seconds = json.loads(text), number / 10**9
    iso = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return {
        "schema": SCHEMA,
        "id": f"{number:016x}",
        "at": {"unix": round(seconds, 6), "iso": iso.replace("+00:00", "Z")},
        "kind": kind,
        "batch": batch,
        "state": facts.get("state"),
        "source": facts.get("source"),
        "agent": facts.get("agent"),
        "target": facts.get("target"),
        "branch": facts.get("branch"),
        "commit": facts.get("commit"),
        "other": facts.get("other"),
        "codes": facts.get("codes", []),
    }


class Events:
    """The events of the queue at `root` after the event `since`.

    Without it, those that come from now on.  It makes no store.
    """

    def __init__(self, root: Path, since: str | None = None) -> None:
        self._root = root
        self._store: Store | None = None
        self.lost = False  # true if events were removed that were asked for
        self._seen = int(since or _FIRST, 16)
        if since is None and (database := self._open()):
            self._seen = (database.one("select max(number) from events") or (0,))[0] or 0

    @property
    def last(self) -> str:
        """The id behind which it goes on."""
        return f"{self._seen:016x}"

    def read(self, most: int | None = None) -> list[Event]:
        """Return the first `most` events since the last call, oldest first."""
        database = self._open()
        if database is None:
            return []
        rows = database.all(
            f"select {_COLUMNS} from events where number > :seen order by number limit :most",
            seen=self._seen,
            most=-1 if most is None else most,
        )
        self.lost |= self._seen < int(database.recall(BEFORE) or 0)
        if rows:
            self._seen = rows[-1][0]
        return list(map(_event, rows))

    def newest(self, most: int) -> tuple[list[Event], int]:
        """Return the last events, oldest first, and the number before them."""
        database = self._open()
        if database is None:
            return [], 0
        rows = database.all(
            f"select {_COLUMNS} from events order by number desc limit :most", most=most
        )
        (count,) = database.one("select count(*) from events") or (0,)
        return [_event(row) for row in reversed(rows)], count - len(rows)

    def _open(self) -> Store | None:
        self._store = store.there(self._root)
        return self._store
