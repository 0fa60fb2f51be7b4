"""Verdicts on their way into the tables: one statement for as many as come together.

Each row is changed only where it is still this session's.  A statement, its journey and its commit
cost more than what they change, so what a group of batches needs is said once for all of them; and
whoever listens is told once for each lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from patchq.gate.errors import Busy, LaneLost
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.postgres.database import Database
from patchq.gate.queue.postgres.proposals import proposed
from patchq.gate.queue.postgres.rows import number_of
from patchq.gate.report.schema import Report

MINE_TO_END = """
    r.state in ('claimed', 'ending') and r.session = %(me)s
    or r.state = 'held' and (r.session is null or r.session = %(me)s or not alive(r.session))
"""
"""Which rows this session may give a verdict: what it has in hand, and what is held and nobody
alive means to end."""


class RowVerdict(Struct, frozen=True):
    """A claim with its report, and the page of that for people."""

    claim: Claim
    report: Report
    page: str
    parcel: bytes | None = None


@dataclass
class Together:
    """What is recorded at once: verdicts that are intended, and those that are true."""

    intended: list[RowVerdict] = field(default_factory=list)
    true: list[RowVerdict] = field(default_factory=list)


def lost(claim: Claim) -> LaneLost:
    return LaneLost(
        f"the response {claim.source.name!r} is not in hand any more: the connection was lost, or "
        "another worker took it over",
        "nothing to do: whoever has it gives it its verdict",
    )


def check(claims: Iterable[Claim], changed: Iterable[int]) -> None:
    """Raise unless the rows of all claims were changed: one was not this session's (any more)."""
    rows = set(changed)
    for claim in claims:
        if number_of(claim) in rows:
            continue
        if claim.held:
            raise Busy(f"another process gives {claim.id} its verdict", f"patchq show {claim.id}")
        raise lost(claim)


def intend(database: Database, me: int, verdicts: Sequence[RowVerdict]) -> None:
    """Record what will be published once the branches have moved."""
    if not verdicts:
        return
    changed = database.column(
        f"""
        update responses r set intended = v.report, parcel = v.parcel, id = v.id, session = %(me)s,
            state = case r.state when 'held' then 'ending' else r.state end
        from unnest(
            %(numbers)b::bigint[], %(reports)b::bytea[], %(ids)b::text[], %(parcels)b::bytea[]
        ) v (number, report, id, parcel)
        where r.number = v.number and ({MINE_TO_END}) returning r.number
        """,
        me=me,
        parcels=[verdict.parcel for verdict in verdicts],
        **_columns(verdicts),
    )
    check((verdict.claim for verdict in verdicts), changed)


def publish(database: Database, me: int, verdicts: Sequence[RowVerdict]) -> None:
    """End the claims, in this order."""
    if not verdicts:
        return
    changed = database.column(
        f"""
        with v as materialized (
            select *, nextval('verdicts') as verdict, nextval('changes') as change from (
                select * from unnest(
                    %(numbers)b::bigint[], %(reports)b::bytea[], %(ids)b::text[],
                    %(pages)b::bytea[], %(proposed)b::text[], %(digests)b::text[],
                    %(sizes)b::bigint[]
                ) with ordinality u (number, report, id, page, proposed, sha256, size, place)
                order by place
            ) ordered
        ), done as (
            update responses r set state = 'ended', session = null, intended = null,
                parcel = null, report = v.report, page = v.page, id = v.id, held_since = null,
                proposed = v.proposed, ended = clock_timestamp(),
                verdict = v.verdict, change = v.change
            from v where r.number = v.number and ({MINE_TO_END})
            returning r.number, r.id, r.verdict, r.lane
        ), known as (
            insert into ids (id, number, verdict) select id, number, verdict from done
            on conflict (id) do update set verdict = excluded.verdict
        ), noted as (
            insert into sources (sha256, id)
            select v.sha256, v.id from done join v using (number) where v.size > 0
            order by v.place on conflict do nothing
        ), told as (
            select tell('verdict', lane)
            from (select distinct lane from done) lanes
        ) select number, (select count(*) from told) from done
        """,
        me=me,
        pages=[verdict.page.encode("utf-8", "replace") for verdict in verdicts],
        proposed=[proposed(verdict.report) for verdict in verdicts],
        digests=[verdict.claim.source.sha256 for verdict in verdicts],
        sizes=[len(verdict.claim.data) for verdict in verdicts],
        **_columns(verdicts),
    )
    check((verdict.claim for verdict in verdicts), changed)


def _columns(verdicts: Sequence[RowVerdict]) -> dict[str, Sequence[object]]:
    return {
        "numbers": [number_of(verdict.claim) for verdict in verdicts],
        "reports": [spool.encode(verdict.report) for verdict in verdicts],
        "ids": [verdict.report.id for verdict in verdicts],
    }
