"""Events: what happened to batches, each written in the transaction of its change.

An event's number is the time in nanoseconds, or one more than the number before it where that is
larger; so numbers go on after a restart, a store that was made again, or a clock that was set.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchq.gate.queue import store
from patchq.gate.queue.database import EVENT, Database, Row
from patchq.gate.report.schema import EventKind, Moment, Report, kind_of, waits_for_its_agent

SCHEMA = "patchq.event/1"
BEFORE = "events.before"  # the key of the number up to which events were removed
_MOST_CODES = 10
_FIRST = "0" * 16
_FACTS = ("state", "source", "agent", "target", "branch", "commit", "other")
_COLUMNS = "number, batch, kind, facts"


# One change of state, `patchq.event/1`; what is not known is null or empty.
Event = dict[str, Any]


def _sign(report: Report | None) -> tuple[EventKind | None, Moment | None]:
    asked = report.review if report and waits_for_its_agent(report) else None
    return kind_of(report) if report else None, asked.at if asked else None


def add_event(
    database: Database, batch: str, kind: str, number: int | None = None, facts: str = "{}"
) -> None:
    """Add an event under a number from `event_number`, or the next one."""
    database.run(
        "insert into events (number, batch, kind, facts)"
        f" values (coalesce(cast(:number as bigint), {EVENT}), :batch, :kind, :facts)",
        number=number,
        batch=batch,
        kind=kind,
        facts=facts,
    )


def add_step(database: Database, before: Report | None, after: Report, number: int) -> None:
    """Add the event of a step between two reports, if it is one.

    Each request for changes is an event.
    """
    if _sign(before) == _sign(after):
        return
    codes = dict.fromkeys(problem.code for problem in after.problems)
    found = {
        "source": after.source.name,
        **{key: getattr(after, key) for key in ("state", "agent", "target", "branch", "commit")},
        "other": after.duplicate_of,
        "codes": list(codes)[:_MOST_CODES],
    }
    facts = json.dumps({k: v for k, v in found.items() if v}, separators=(",", ":"))
    add_event(database, after.id, str(kind_of(after, before)), number, facts)


def trim_events(database: Database, number: int) -> None:
    """Remove the events up to that number."""
    if database.all("delete from events where number <= :number returning number", number=number):
        database.remember(BEFORE, str(number))


def _event(row: Row) -> Event:
    number, batch, kind, text = row
    at = datetime.fromtimestamp(number / 10**9, UTC).isoformat(timespec="milliseconds")
    return {
        "schema": SCHEMA,
        "id": f"{number:016x}",
        "at": {"unix": round(number / 10**9, 6), "iso": at.replace("+00:00", "Z")},
        "kind": kind,
        "batch": batch,
        **dict.fromkeys(_FACTS),
        "codes": [],
        **json.loads(text),
    }


class Events:
    """The events of the queue at `root` after the event `since`.

    Without it, those that come from now on.  It makes no store.
    """

    def __init__(self, root: Path, since: str | None = None) -> None:
        self._root = root
        self._store: store.Store | None = None  # open as long as this is
        self.lost = False  # true if events were removed that were asked for
        if since is None:
            [(self._seen,)] = self._ask("select coalesce(max(number), 0) from events") or [(0,)]
        else:
            self._seen = int(since or _FIRST, 16)

    @property
    def last(self) -> str:
        """The id behind which it goes on."""
        return f"{self._seen:016x}"

    def read(self, most: int | None = None) -> list[Event]:
        """Return the first `most` events since the last call, oldest first."""
        rows = self._ask(
            f"select {_COLUMNS} from events where number > :seen order by number limit :most",
            seen=self._seen,
            most=-1 if most is None else most,
        )
        for (before,) in self._ask("select value from meta where key = :key", key=BEFORE):
            self.lost |= self._seen < int(before)
        if rows:
            self._seen = rows[-1][0]
        return list(map(_event, rows))

    def newest(self, most: int) -> tuple[list[Event], int]:
        """Return the last events, oldest first, and the number before them."""
        rows = self._ask(
            f"select {_COLUMNS} from events order by number desc limit :most", most=most
        )
        [(count,)] = self._ask("select count(*) from events") or [(0,)]
        return [_event(row) for row in reversed(rows)], count - len(rows)

    def _ask(self, statement: str, **values: object) -> list[Row]:
        self._store = store.there(self._root)
        return self._store.all(statement, **values) if self._store else []
