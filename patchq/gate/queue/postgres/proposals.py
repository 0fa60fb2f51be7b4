"""What waits for review, with the marks that whoever serves a lane hands to the next one.

A mark is the commit that patchq put a proposal's branch at, or is about to.  It is here before the
branch moves, so that who takes the lane over from one that died knows the branch for patchq's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from patchq.gate.queue.postgres.database import Database
from patchq.gate.report.schema import Report


def proposed(report: Report) -> str | None:
    """The commit at which a batch waits for review; None for one that does not."""
    return report.commit if report.state == "proposed" else None


def found(
    database: Database, lanes: Sequence[str], known: Collection[str]
) -> dict[str, str | None]:
    """The marks in these lanes by the ids of their batches, and None for each of `known` that waits
    in no lane at all."""
    rows = database.all(
        """
        select id, proposed from responses where proposed is not null and lane = any(%(lanes)s)
        union all
        select k.id, null from unnest(%(known)s::text[]) k (id) where not exists (
            select from responses r where r.id = k.id and r.proposed is not null
        )
        """,
        lanes=list(lanes),
        known=list(known),
    )
    return dict(rows)


def mark(database: Database, marks: Mapping[str, str]) -> None:
    """Have these marks, of what still waits."""
    database.run(
        """
        update responses r set proposed = m.proposed
        from unnest(%s::text[], %s::text[]) m (id, proposed)
        where r.id = m.id and r.proposed is not null
        """,
        list(marks),
        list(marks.values()),
    )


def lanes(database: Database) -> Sequence[str]:
    """Those in which something waits."""
    return database.column(
        "select distinct lane from responses where proposed is not null order by lane"
    )
