"""Events, and small values: caches, troubles of processes, marks of people; all in the store.

An event says what happened to a batch, and is written in the transaction of that change.  Its
number is the time in nanoseconds, or one more than the number before it where that is larger; so
numbers go on after a restart, a store that was made again, or a clock that was set.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode

from patchq.gate.errors import Fault
from patchq.gate.queue import store
from patchq.gate.queue.database import EVENT, Database, Row, storable
from patchq.gate.report.schema import EventKind, Moment, Report, kind_of, waits_for_its_agent

SCHEMA = "patchq.event/1"
BEFORE = "events.before"  # the key of the number up to which events were removed
_MOST_CODES = 10
_FIRST = "0" * 16
_FACTS = ("state", "source", "agent", "target", "branch", "commit", "other")
_COLUMNS = "number, batch, kind, facts"


# One change of state, `patchq.event/1`; what is not known is null or empty.
Event = dict[str, Any]


def differs(before: Report | None, after: Report) -> bool:
    """Return True if the step from one report to the next is an event.

    Each request for changes is one.
    """
    return _sign(before) != _sign(after)


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


def event_facts(report: Report) -> str:
    """Return what an event tells of a report."""
    codes = dict.fromkeys(problem.code for problem in report.problems)
    found = {
        "source": report.source.name,
        **{key: getattr(report, key) for key in ("state", "agent", "target", "branch", "commit")},
        "other": report.duplicate_of,
        "codes": list(codes)[:_MOST_CODES],
    }
    return json.dumps({k: v for k, v in found.items() if v}, separators=(",", ":"))


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


# ---------------------------------------------------------------- small values

DAY = 86_400.0  # seconds for which a flaky hook is known for one
FLAKY = "flaky"  # a hook and a tree that it refused once, and passed the next time
_MOST_CHARACTERS = 400
_MOST = 10_000


class Shelf(Struct, frozen=True):
    """Values of one kind in the store of the queue at `root`.

    Beyond `most`, the oldest go.  What cannot be read or written is left out, unless `strict`.
    """

    root: Path
    kind: str
    most: int = _MOST
    strict: bool = False

    def all(self, since: float = 0.0) -> dict[str, bytes]:
        """Return the values that were kept since then, the oldest first, by their keys."""
        return dict(
            self._ask(
                "select key, value from kept where kind = :kind and at > :at order by at", at=since
            )
        )

    def get(self, key: str) -> bytes | None:
        """Return the value of the key."""
        rows = self._ask("select value from kept where kind = :kind and key = :key", key=key)
        return rows[0][0] if rows else None

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under the key."""
        self._ask(
            "insert into kept (kind, key, at, value) values (:kind, :key, :at, :value)"
            " on conflict (kind, key) do update set at = excluded.at, value = excluded.value",
            key=key,
            at=time(),
            value=value,
        )
        self._ask(
            "delete from kept where kind = :kind and at <= (select at from kept"
            " where kind = :kind order by at desc limit 1 offset :most)",
            most=self.most,
        )

    def keep(self, key: str, value: str) -> None:
        """Keep a text under the key; an empty one is taken away."""
        if value:
            self.put(key, value.encode())
        else:
            self.remove(key)

    def remove(self, *keys: str) -> None:
        """Remove these values; one that is not there costs no write."""
        for key in keys:
            if self.get(key) is not None:
                self._ask("delete from kept where kind = :kind and key = :key", key=key)

    def _ask(self, statement: str, **values: object) -> list[Row]:
        with suppress(*(() if self.strict else (Fault, OSError))):
            return store.ask(self.root, statement, kind=self.kind, **values)
        return []


class Trouble(Struct, frozen=True):
    """A thing that does not work, with the reason and the cure.

    `since` is in seconds since the epoch.
    """

    what: str
    message: str
    cure: str
    since: float
    times: int = 1


class Troubles:
    """Things that do not work beside the queue at `root`: a hook that hangs, a dead remote.

    None of them keeps a response from its verdict.  A process notes such a thing by its name, and
    removes the note once it works again.
    """

    def __init__(self, root: Path) -> None:
        self._shelf = Shelf(root, "trouble")

    def note(self, what: str, message: str, cure: str) -> None:
        known = self._shelf.get(what)
        before = decode(known, type=Trouble) if known else Trouble(what, "", "", time(), 0)
        text = storable(message[:_MOST_CHARACTERS])
        now = Trouble(what, text, storable(cure), before.since, before.times + 1)
        self._shelf.put(what, encode(now))

    def over(self, what: str) -> None:
        """Remove the note on a thing that works again."""
        self._shelf.remove(what)

    def all(self) -> list[Trouble]:
        """Return what is noted, by its names."""
        found = self._shelf.all()
        return [decode(found[what], type=Trouble) for what in sorted(found)]
