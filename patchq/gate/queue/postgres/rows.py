"""A response's row: the columns that a claim is read from, and how it is read."""

from __future__ import annotations

import os

from psycopg.rows import TupleRow

from patchq.core.model.values import Generation, Problem
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.inbox import Snapshot, claim_of, too_large

CAME = "(extract(epoch from came) * 1000000)::bigint as came"
COLUMNS = f"""
    number, name, data, size, id, intended, state, extract(epoch from held_since)::float8,
    answer, choice, deaths, problem, {CAME}, parcel
"""


def claim_of_row(row: TupleRow, limit: int) -> Claim:
    """The claim of a row of these `COLUMNS`; a body of more bytes than the limit is none."""
    number, name, data, size, id, intended, state, since, *more = row
    answer, choice, deaths, why, came, parcel = more
    body = Snapshot(data, size)
    if size > len(data):
        body = Snapshot(b"", size, too_large(size, limit))
    if problem := spool.decode(why):
        body = Snapshot(b"", size, Problem(**problem))
    asked = spool.decode(answer)
    report = spool.report(intended)
    held = state in ("held", "ending")
    return claim_of(
        token(number, came),
        os.fsdecode(name),
        body,
        id=report.id if report else id if held else None,
        intended=report,
        held=held,
        held_since=since if held else None,
        generation=Generation.from_json(asked) if asked is not None else None,
        choice=spool.decode(choice),
        deaths=deaths,
        parcel=parcel,
    )


def token(number: int, came: int) -> str:
    """As in a directory it begins with when the response came: here in microseconds since the
    epoch by the database's clock."""
    return f"{came * 1000:016x}-{number:x}"


def number_of(claim: Claim) -> int:
    """The claim's row."""
    return int(claim.token.rpartition("-")[2], 16)
