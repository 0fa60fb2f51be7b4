"""Marks of one person: the files that they have viewed, and drafts of their comments."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from patchq.gate.queue import store
from patchq.gate.queue.batches import Row


class Marks(Struct, frozen=True):
    """The marks of one kind that a person has made, in the store of the queue at `root`."""

    root: Path
    person: str
    kind: str

    def of(self, batch: str = "") -> dict[str, str]:
        """Return the values of a change, or of no certain one, by their keys."""
        return dict(self._ask("select key, value from marks", batch))

    def put(self, key: str, value: str, batch: str = "") -> None:
        """Keep a value; an empty one is taken away."""
        if not value:
            self._ask("delete from marks", batch, "and key = :key", key=key)
            return
        store.ask(
            self.root,
            "insert into marks (person, kind, batch, key, value)"
            " values (:person, :kind, :batch, :key, :value)"
            " on conflict (person, kind, batch, key) do update set value = excluded.value",
            person=self.person,
            kind=self.kind,
            batch=batch,
            key=key,
            value=value,
        )

    def clear(self, batch: str) -> None:
        """Take away all values of a change."""
        self._ask("delete from marks", batch)

    def _ask(self, statement: str, batch: str, more: str = "", **values: str) -> list[Row]:
        return store.ask(
            self.root,
            f"{statement} where person = :person and kind = :kind and batch = :batch {more}",
            person=self.person,
            kind=self.kind,
            batch=batch,
            **values,
        )
