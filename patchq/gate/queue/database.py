"""The interface to a database, and a queue's tables, for SQLite and PostgreSQL.

A response is `waiting` (in a cluster), `claimed`, `held`, `ending` (held, and a session means to
end it), `ended` or `gone` (behind retention).  Its papers are `body`, `report`, `page`, `intended`,
`parcel`, `answer` and `choice`.

`ending` is the number of the event of its verdict, and `change` a number that grows with each
change of its report.  `shown` is 0 as long as its files in done/ or rejected/ may not be durable,
here or at its feeder.  `lane`, `came`, `feeder` and `proposed` serve clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from patchq.gate.queue import Past, spool
from patchq.gate.report.schema import Report

VERSION = 7
COLUMNS = "number, token, name, size, problem, state, held_since, id, deaths, lane"
OPEN = "state in ('claimed', 'held', 'ending')"
NOT_MINE = (
    "(session is null or"
    " session <> :me and session not in (select number from sessions where alive(number)))"
)
EVENT = "event_number((select coalesce(max(number), 0) from events))"
# Rows that this session may give a verdict: its own, and held ones that are not being ended.
MINE_TO_END = """(
    state in ('claimed', 'ending') and session = :me
    or state = 'held' and (session is null or session = :me or not alive(session))
)"""
_PIECE = 256
_TABLES = """
create table if not exists meta (key text primary key, value text not null);
create table if not exists sessions (
    number {serial},
    name text not null default '',
    host text not null,
    pid bigint not null,
    began double precision not null,
    beat double precision
);
create table if not exists responses (
    number {serial},
    token text not null unique,
    lane text not null default '',
    feeder text,
    came double precision,
    name bytea not null,
    size bigint not null,
    sha256 text,
    problem text,
    state text not null,
    session bigint,
    adopted integer not null default 0,
    deaths integer not null default 0,
    held_since double precision,
    id text unique,
    verdict text,
    ended double precision,
    ending bigint,
    change bigint,
    other text,
    code text,
    proposed text,
    shown integer not null default 1
);
create index if not exists responses_state on responses (state, number);
create index if not exists responses_sha256 on responses (sha256);
create index if not exists responses_ending on responses (ending);
create index if not exists responses_shown on responses (number) where shown = 0;
create index if not exists responses_proposed on responses (lane) where proposed is not null;
create table if not exists papers (
    number bigint not null, kind text not null, data bytea not null, primary key (number, kind)
);
create table if not exists events (
    number {number}, batch text not null, kind text not null, facts text not null default '{{}}'
);
create table if not exists counts (
    what text, agent text, model text, form text, value text, many double precision not null,
    primary key (what, agent, model, form, value)
);
create table if not exists kept (
    kind text not null,
    key text not null,
    at double precision not null,
    value bytea not null,
    primary key (kind, key)
);
create index if not exists kept_age on kept (kind, at);
"""


def tables(serial: str, number: str) -> str:
    """Return the statements that make missing tables, with the words for numbered keys."""
    return _TABLES.format(serial=serial, number=number)


Row = tuple[Any, ...]


class Taken(Exception):
    """Another row has the unique value already."""


class Database(ABC):
    """A store that takes statements with named parameters (`:name`)."""

    @abstractmethod
    def all(self, statement: str, **values: object) -> list[Row]:
        """Return the rows of a statement."""

    @abstractmethod
    def each(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Change rows by the same statement, once for each of these values."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit what the block changes as a whole.

        Inside another transaction it is part of that.
        """

    @abstractmethod
    def flush(self) -> None:
        """Make durable what was committed."""

    def run(self, statement: str, **values: object) -> None:
        """Change rows."""
        self.each(statement, [values])

    def one(self, statement: str, **values: object) -> Row | None:
        """Return the first row of a statement."""
        return next(iter(self.all(statement, **values)), None)

    def column(self, statement: str, **values: object) -> list[Any]:
        """Return the first value of each row."""
        return [row[0] for row in self.all(statement, **values)]

    def value(self, statement: str, **values: object) -> Any | None:
        """Return the first value of the first row."""
        return next(iter(self.column(statement, **values)), None)

    def recall(self, key: str) -> str | None:
        """Return what was remembered under the key."""
        return self.value("select value from meta where key = :key", key=key)

    def remember(self, key: str, value: str) -> None:
        """Keep a small text for later processes."""
        self.run(
            "insert into meta (key, value) values (:key, :value)"
            " on conflict (key) do update set value = excluded.value",
            key=key,
            value=value,
        )


def storable(text: str) -> str:
    """Return the text with question marks for what no database takes."""
    return text.encode("utf-8", "replace").decode()


def known_id(id: str) -> str:
    """Return the id, or an empty one if no batch can have it."""
    return id if storable(id) == id and spool.valid(id) else ""


class KnownBatches:
    """Reports and responses of batches, for which no lock and no claim is needed."""

    store: Database

    def load(self, id: str) -> Report | None:
        """Return the report of a batch."""
        return spool.report(self._paper(id, "report"))

    def body(self, id: str) -> bytes | None:
        """Return the response of a batch, or None if it was refused unread."""
        return self._paper(id, "body") if self._paper(id, "report") else None

    def by_source(self, sha256: str) -> Sequence[str]:
        """Return held and decided batches that were made from these bytes, oldest first."""
        return self.store.column(
            "select id from responses r where sha256 = :sha256 and id is not null"
            " and (state <> 'claimed' or exists (select number from papers p"
            " where p.number = r.number and p.kind = 'intended')) order by number",
            sha256=sha256,
        )

    def older(self, limit: float, most: int) -> list[str]:
        """Return the oldest batches that ended before `limit`, waiting proposals excepted."""
        return self.store.column(
            "select id from responses where ending < :number and state = 'ended'"
            " and ended < :limit and proposed is null order by ending limit :most",
            number=int(limit * 10**9),
            limit=limit,
            most=most,
        )

    def newest(self) -> Iterator[str]:
        """Give held batches, then all that ever got a verdict, the last one first.

        Those that were forgotten are among them.
        """
        yield from self.store.column(
            "select id from responses where state in ('held', 'ending') order by id desc"
        )
        last = 2**63 - 1
        while rows := self.store.all(
            "select id, ending from responses where ending is not null and ending < :last"
            " order by ending desc limit :most",
            last=last,
            most=_PIECE,
        ):
            yield from (row[0] for row in rows)
            last = rows[-1][1]

    def ended(self, id: str) -> float | None:
        """Return the time of a batch's verdict, by which `newest` sorts, or None."""
        # That of one restored is older than its event.
        first = "case when 1e9 * ended < ending then ended else ending / 1e9 end"
        return self._column(id, f"case state when 'ended' then {first} end")

    def past(self, id: str) -> Past | None:
        """Return what is left of a batch that was forgotten."""
        row = self.store.one(
            "select verdict, ended, other, code from responses"
            " where id = :id and state = 'gone' and verdict is not null",
            id=known_id(id),
        )
        return Past(row[0], int(row[1]), row[2], row[3]) if row else None

    def token(self, id: str) -> str | None:
        """Return the claim that the id was given to."""
        return self._column(id, "token")

    def knows(self, id: str) -> bool:
        """Return true if the id was ever given."""
        return self.token(id) is not None

    def _column(self, id: str, column: str) -> Any | None:
        statement = f"select {column} from responses r where id = :id"
        return self.store.value(statement, id=known_id(id))

    def _paper(self, id: str, kind: str) -> bytes | None:
        paper = f"select data from papers p where p.number = r.number and p.kind = '{kind}'"
        return self._column(id, f"({paper})")

    def _put(self, number: int, **papers: bytes) -> None:
        rows = ", ".join(f"(:number, '{kind}', :{kind})" for kind in papers)
        self.store.run(
            f"insert into papers (number, kind, data) values {rows}"
            " on conflict (number, kind) do update set data = excluded.data",
            number=number,
            **papers,
        )
