"""Values that take time to find out again: answers of models, passes of hooks."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import time

from msgspec import Struct

from patchq.gate.errors import Fault
from patchq.gate.queue import store

DAY = 86_400.0  # seconds for which a flaky hook is known for one
FLAKY = "flaky"  # a hook and a tree that it refused once, and passed the next time


class Shelf(Struct, frozen=True):
    """Values of one kind in the store of the queue at `root`; beyond `most`, the oldest go.

    What cannot be read or written is found out once more.
    """

    root: Path
    kind: str
    most: int

    def get(self, key: str) -> bytes | None:
        """Return the value of the key."""
        with suppress(Fault):
            statement = "select value from cache where kind = :kind and key = :key"
            for (value,) in store.ask(self.root, statement, kind=self.kind, key=key):
                return bytes(value)
        return None

    def since(self, seconds: float) -> list[str]:
        """Return the keys of the values that were kept since then."""
        with suppress(Fault):
            statement = "select key from cache where kind = :kind and at > :at order by at"
            rows = store.ask(self.root, statement, kind=self.kind, at=seconds)
            return [key for (key,) in rows]
        return []

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under the key."""
        with suppress(Fault):
            store.ask(
                self.root,
                "insert into cache (kind, key, at, value) values (:kind, :key, :at, :value)"
                " on conflict (kind, key) do update set at = excluded.at, value = excluded.value",
                kind=self.kind,
                key=key,
                at=time(),
                value=value,
            )
            store.ask(
                self.root,
                "delete from cache where kind = :kind and at <= (select at from cache"
                " where kind = :kind order by at desc limit 1 offset :most)",
                kind=self.kind,
                most=self.most,
            )
