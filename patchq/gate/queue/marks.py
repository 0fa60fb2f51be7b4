"""What one person has viewed, and the drafts of their comments."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from patchq.gate.queue import store


class Marks(Struct, frozen=True):
    """The marks of one kind that a person has made, in the store of the queue at `root`."""

    root: Path
    person: str
    kind: str

    def of(self, batch: str = "") -> dict[str, str]:
        """Return the values of a change, or of no certain one, by their keys."""
        with store.look(self.root) as found:
            if found is None:
                return {}
            statement = (
                "select key, value from marks"
                " where person = :person and kind = :kind and batch = :batch"
            )
            return dict(found.all(statement, person=self.person, kind=self.kind, batch=batch))

    def put(self, key: str, value: str, batch: str = "") -> None:
        """Keep a value; an empty one is taken away."""
        with store.look(self.root) as found:
            if found is None:
                return
            place = {"person": self.person, "kind": self.kind, "batch": batch, "key": key}
            with found.transaction():
                found.run(
                    "delete from marks where person = :person and kind = :kind"
                    " and batch = :batch and key = :key",
                    **place,
                )
                if value:
                    found.run(
                        "insert into marks (person, kind, batch, key, value)"
                        " values (:person, :kind, :batch, :key, :value)",
                        **place,
                        value=value,
                    )

    def clear(self, batch: str) -> None:
        """Take away all values of a change."""
        with store.look(self.root) as found:
            if found is not None:
                found.run(
                    "delete from marks where person = :person and kind = :kind and batch = :batch",
                    person=self.person,
                    kind=self.kind,
                    batch=batch,
                )
