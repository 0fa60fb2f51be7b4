"""Ids of batches, each given once: by one statement, to whoever asks for it first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from patchq.gate.queue import Claim
from patchq.gate.queue.ids import numbered
from patchq.gate.queue.postgres.database import Database
from patchq.gate.queue.postgres.rows import number_of

_NAMES = 64
"""So many are looked up at once, after the wanted one was not free."""


class Ids:
    """The ids in the tables; those that `is_known` knows are in use elsewhere."""

    def __init__(self, database: Database, is_known: Callable[[str], bool]) -> None:
        self._database = database
        self._is_known = is_known
        self._made_from: tuple[str, Sequence[str]] | None = None

    def reserve(self, claim: Claim, wanted: str) -> str:
        names = (numbered(wanted, n) for n in count(1))
        free = (id for id in names if not id.endswith(".report") and not self._is_known(id))
        most = 1
        while True:
            some = [next(free) for _ in range(most)]
            known = set[str]()
            if most > 1:
                known.update(self._database.column("select id from ids where id = any(%s)", some))
            for id in some:
                if id not in known and (given := self._given(claim, id)):
                    return given
            most = _NAMES

    def _given(self, claim: Claim, id: str) -> str | None:
        """The claim's id: the one that it has, or this one, if nobody has that.  What it was made
        from before is asked for next, and comes along."""
        digest = claim.source.sha256
        row = self._database.one(
            """
            with mine as (
                select id from responses where number = %(number)s and id is not null
            ), new as (
                insert into ids (id, number) select %(id)s, %(number)s
                where not exists (select from mine) on conflict do nothing returning id
            ), given as (
                update responses set id = new.id from new where responses.number = %(number)s
            ) select coalesce((select id from mine), (select id from new)),
                array(select id from sources where sha256 = %(digest)s order by place)
            """,
            number=number_of(claim),
            id=id,
            digest=digest,
        )
        assert row
        self._made_from = (digest, row[1])
        return None if row[0] is None else str(row[0])

    def made_from(self, sha256: str) -> Sequence[str] | None:
        """What came along with the last id, if that was of a response with this digest; once, and
        None where it has to be asked for."""
        known, self._made_from = self._made_from, None
        return known[1] if known and known[0] == sha256 else None

    def forget(self) -> None:
        """Believe nothing that came along: something may have changed since."""
        self._made_from = None
