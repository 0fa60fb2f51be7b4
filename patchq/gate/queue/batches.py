"""Reports and responses in a store, and traces of batches that were forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from patchq.gate.queue import Past, spool
from patchq.gate.queue.spool import valid
from patchq.gate.report.schema import Report

Row = tuple[Any, ...]
_PIECE = 256
OPEN = "state in ('claimed', 'held', 'ending')"


class Taken(Exception):
    """Another row has the unique value already."""


class Database(ABC):
    """A store that takes statements with named parameters (`:name`)."""

    @abstractmethod
    def all(self, statement: str, **values: object) -> list[Row]:
        """Return the rows of a statement."""

    @abstractmethod
    def run(self, statement: str, **values: object) -> None:
        """Change rows."""

    @abstractmethod
    def each(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Change rows by the same statement, once for each of these values."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit what the block changes as a whole; inside another one it is part of that."""

    @abstractmethod
    def flush(self) -> None:
        """Make durable what was committed."""

    def one(self, statement: str, **values: object) -> Row | None:
        """Return the first row of a statement."""
        return next(iter(self.all(statement, **values)), None)

    def column(self, statement: str, **values: object) -> list[Any]:
        """Return the first value of each row."""
        return [row[0] for row in self.all(statement, **values)]

    def recall(self, key: str) -> str | None:
        """Return what was remembered under the key."""
        row = self.one("select value from meta where key = :key", key=key)
        return row[0] if row else None

    def remember(self, key: str, value: str) -> None:
        """Keep a small text for later processes."""
        self.run(
            "insert into meta (key, value) values (:key, :value)"
            " on conflict (key) do update set value = excluded.value",
            key=key,
            value=value,
        )


class KnownBatches:
    """Reports and responses of batches, for which no lock and no claim is needed."""

    def __init__(self, database: Database) -> None:
        self.store = database

    def load(self, id: str) -> Report | None:
        """Return the report of a batch."""
        return spool.report(self._paper(id, "report"))

    def body(self, id: str) -> bytes | None:
        """Return the response of a batch, byte for byte; None if it was refused unread."""
        return self._paper(id, "body") if self._paper(id, "report") else None

    def _paper(self, id: str, kind: str) -> bytes | None:
        if not is_storable(id):
            return None
        row = self.store.one(
            "select data from papers where kind = :kind"
            " and number = (select number from responses where id = :id)",
            kind=kind,
            id=id,
        )
        return row[0] if row else None

    def _papers(self, number: int) -> dict[str, bytes]:
        rows = self.store.all("select kind, data from papers where number = :number", number=number)
        return dict(rows)

    def _put(self, number: int, **papers: bytes) -> None:
        """Keep papers of these kinds, in place of those before them."""
        if papers:
            rows = ", ".join(f"(:number, '{kind}', :{kind})" for kind in papers)
            self.store.run(
                f"insert into papers (number, kind, data) values {rows}"
                " on conflict (number, kind) do update set data = excluded.data",
                number=number,
                **papers,
            )

    def by_source(self, sha256: str) -> Sequence[str]:
        """Return held and decided batches that were made from these bytes, oldest first."""
        return self.store.column(
            "select id from responses r where sha256 = :sha256 and id is not null"
            " and (state <> 'claimed' or exists (select number from papers p"
            " where p.number = r.number and p.kind = 'intended')) order by number",
            sha256=sha256,
        )

    def ids(self) -> list[str]:
        """Return the batches that have a report, in the order of their verdicts, held ones last."""
        return self.store.column(
            "select id from responses where state in ('ended', 'held', 'ending')"
            " order by case state when 'ended' then 0 else 1 end, ending, id"
        )

    def older(self, limit: float, most: int) -> list[str]:
        """Return the oldest batches whose last state is from before that time, and none waits."""
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
        """Return the time of a batch's verdict or later state; None for one without a verdict."""
        row = is_storable(id) and self.store.one(
            "select ended from responses where id = :id and state = 'ended'", id=id
        )
        return row[0] if row else None

    def past(self, id: str) -> Past | None:
        """Return what is left of a batch that was forgotten."""
        row = is_storable(id) and self.store.one(
            "select verdict, ended, other, code from responses"
            " where id = :id and state = 'gone' and verdict is not null",
            id=id,
        )
        return Past(row[0], int(row[1]), row[2], row[3]) if row else None

    def token(self, id: str) -> str | None:
        """Return the claim that the id was given to."""
        row = self.store.one("select token from responses where id = :id", id=id)
        return row[0] if row else None

    def knows(self, id: str) -> bool:
        """Return true if the id was ever given."""
        return is_storable(id) and self.token(id) is not None


def is_storable(id: str) -> bool:
    """Return true if there can be such an id at all."""
    with suppress(UnicodeEncodeError):
        return valid(id) and bool(id.encode())
    return False


def storable(text: str) -> str:
    """Return the text with question marks for what no database takes."""
    return text.encode("utf-8", "replace").decode()


def verdict_columns(report: Report) -> Mapping[str, Any]:
    """Return what a row says of its verdict, by its columns."""
    codes = (p.code for p in report.problems if p.severity == "error")
    return {
        "id": report.id,
        "verdict": report.state,
        "other": report.duplicate_of,
        "code": next(codes, None),
        "proposed": report.commit if report.state == "proposed" else None,
    }
