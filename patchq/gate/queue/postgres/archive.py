"""What the database knows of batches: their reports and responses, in the order of their verdicts,
and what is left of those that were forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchq.gate.errors import DiskFault
from patchq.gate.queue import Past, spool
from patchq.gate.queue.postgres.database import Database
from patchq.gate.queue.postgres.proposals import proposed
from patchq.gate.report.schema import Report


class Archive:
    """The half of `QueueEngine` that no lane is needed for; see there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, id: str) -> Report | None:
        if not _sayable(id):
            return None
        row = self._database.one("select report from responses where id = %s", id)
        return spool.report(row[0]) if row else None

    def rewrite(self, report: Report, markdown: str) -> None:
        row = self._database.one(
            """
            with done as (
                update responses set report = %(report)s, page = %(page)s,
                    change = nextval('changes'),
                    proposed = case when %(waits)s::text is not null
                        then coalesce(proposed, %(waits)s) end,
                    ended = case when ended is not null then clock_timestamp() end
                where id = %(id)s and report is not null returning lane
            ) select tell('verdict', lane) from done
            """,
            report=spool.encode(report),
            page=markdown.encode("utf-8", "replace"),
            waits=proposed(report),
            id=report.id,
        )
        if row is None:
            raise DiskFault(f"the report of {report.id} is not there any more")

    def body(self, id: str) -> bytes | None:
        if not _sayable(id):
            return None
        row = self._database.one(
            "select data, size from responses where id = %s and report is not null", id
        )
        return row[0] if row and len(row[0]) == row[1] else None

    def by_source(self, sha256: str) -> Sequence[str]:
        return self._database.column(
            "select id from sources where sha256 = %s order by place", sha256
        )

    def ids(self) -> Iterator[str]:
        return iter(
            self._database.column(
                "select id from responses where report is not null"
                " order by verdict nulls last, number"
            )
        )

    def older(self, limit: float) -> Iterator[str]:
        return iter(
            self._database.column(
                "select id from responses where ended < to_timestamp(%s) order by verdict", limit
            )
        )

    def newest(self) -> Iterator[str]:
        yield from self._database.column(
            "select id from responses where state in ('held', 'ending') order by number desc"
        )
        last: int | None = None
        while rows := self._database.all(
            "select id, verdict from ids where verdict < coalesce(%s, 9223372036854775807)"
            " order by verdict desc limit 256",
            last,
        ):
            yield from (row[0] for row in rows)
            last = rows[-1][1]

    def ended(self, id: str) -> float | None:
        if not _sayable(id):
            return None
        row = self._database.one(
            "select extract(epoch from ended)::float8 from responses where id = %s", id
        )
        return row[0] if row else None

    def forget(self, *ids: str) -> None:
        for id in filter(_sayable, ids):
            report, ended = self.load(id), self.ended(id)
            if report is None or ended is None:
                continue
            past = Past.of(report, ended)
            self._database.run(
                """
                with gone as (
                    delete from responses
                    where id = %(id)s and state = 'ended' and (feeder is null or seen >= change)
                    returning id
                ) update ids set state = %(state)s, at = %(at)s, other = %(other)s, code = %(code)s
                from gone where ids.id = gone.id
                """,
                id=id,
                state=past.state,
                at=past.at,
                other=past.other,
                code=past.code,
            )

    def past(self, id: str) -> Past | None:
        if not _sayable(id):
            return None
        row = self._database.one(
            "select state, at, other, code from ids where id = %s and state is not null", id
        )
        return Past(*row) if row else None


def _sayable(id: str) -> bool:
    """Whether there can be such an id at all."""
    return spool.valid(id) and id.isprintable()
