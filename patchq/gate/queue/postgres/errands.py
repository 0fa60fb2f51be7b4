"""What people asked the owner of a lane to do, as its owner finds it (see `asking`); and what the
owner of another lane passes on, for whose answer nobody waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patchq.gate.queue import spool
from patchq.gate.queue.postgres.database import Database


def asked(
    database: Database, me: int, lanes: Sequence[str]
) -> list[tuple[int, Mapping[str, Any], bool]]:
    """What is asked of the owner of these lanes, the session `me`: its number, its words, and
    whether somebody has begun it before."""
    rows = database.all(
        """
        with free as (
            select number, session is not null as again from errands
            where lane = any(%(lanes)s) and answer is null
              and session is distinct from %(me)s and not coalesce(alive(session), false)
        ), taken as (
            update errands d set session = %(me)s from free where d.number = free.number
            returning d.number, d.words, free.again
        ) select number, words, again from taken order by number
        """,
        me=me,
        lanes=lanes,
    )
    return [(number, spool.decode(words) or {}, again) for number, words, again in rows]


def answer(database: Database, me: int, number: int, words: Mapping[str, Any]) -> None:
    """Give the answer to what `me` took, and tell that it is there."""
    database.run(
        """
        with done as (
            update errands set answer = %s where number = %s and session = %s returning lane
        ) select tell('answer', lane) from done
        """,
        spool.encode(words),
        number,
        me,
    )


def pass_on(database: Database, own: Sequence[str], id: str, words: Mapping[str, Any]) -> bool:
    """Ask it of the owner of the batch's lane, unless that is one of the `own` lanes."""
    row = database.one(
        """
        with new as (
            insert into errands (lane, words)
            select lane, %(words)s from responses where id = %(id)s and lane <> all(%(own)s)
            returning lane
        ) select tell('asked', lane) from new
        """,
        words=spool.encode(words),
        id=id,
        own=list(own),
    )
    return row is not None
