"""Small values in the store: caches, troubles of processes, marks of people."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import time

from msgspec import Struct
from msgspec.json import decode, encode

from patchq.gate.errors import Fault
from patchq.gate.queue import store
from patchq.gate.queue.database import Row, storable

DAY = 86_400.0  # seconds for which a flaky hook is known for one
FLAKY = "flaky"  # a hook and a tree that it refused once, and passed the next time
_MOST_CHARACTERS = 400
_MOST = 10_000


class Shelf(Struct, frozen=True):
    """Values of one kind in the store of the queue at `root`.

    Beyond `most`, the oldest go.  What cannot be read or written is left out, unless `strict`.
    """

    root: Path
    kind: str
    most: int = _MOST
    strict: bool = False

    def all(self, since: float = 0.0) -> dict[str, bytes]:
        """Return the values that were kept since then, the oldest first, by their keys."""
        return dict(
            self._ask(
                "select key, value from kept where kind = :kind and at > :at order by at", at=since
            )
        )

    def get(self, key: str) -> bytes | None:
        """Return the value of the key."""
        rows = self._ask("select value from kept where kind = :kind and key = :key", key=key)
        return rows[0][0] if rows else None

    def put(self, key: str, value: bytes) -> None:
        """Keep a value under the key."""
        self._ask(
            "insert into kept (kind, key, at, value) values (:kind, :key, :at, :value)"
            " on conflict (kind, key) do update set at = excluded.at, value = excluded.value",
            key=key,
            at=time(),
            value=value,
        )
        self._ask(
            "delete from kept where kind = :kind and at <= (select at from kept"
            " where kind = :kind order by at desc limit 1 offset :most)",
            most=self.most,
        )

    def keep(self, key: str, value: str) -> None:
        """Keep a text under the key; an empty one is taken away."""
        if value:
            self.put(key, value.encode())
        else:
            self.remove(key)

    def remove(self, *keys: str) -> None:
        """Remove these values; one that is not there costs no write."""
        for key in keys:
            if self.get(key) is not None:
                self._ask("delete from kept where kind = :kind and key = :key", key=key)

    def _ask(self, statement: str, **values: object) -> list[Row]:
        with suppress(*(() if self.strict else (Fault, OSError))):
            return store.ask(self.root, statement, kind=self.kind, **values)
        return []


class Trouble(Struct, frozen=True):
    """A thing that does not work, with the reason and the cure.

    `since` is in seconds since the epoch.
    """

    what: str
    message: str
    cure: str
    since: float
    times: int = 1


class Troubles:
    """Things that do not work beside the queue at `root`: a hook that hangs, a dead remote.

    None of them keeps a response from its verdict.  A process notes such a thing by its name, and
    removes the note once it works again.
    """

    def __init__(self, root: Path) -> None:
        self._shelf = Shelf(root, "trouble")

    def note(self, what: str, message: str, cure: str) -> None:
        known = self._shelf.get(what)
        before = decode(known, type=Trouble) if known else Trouble(what, "", "", time(), 0)
        text = storable(message[:_MOST_CHARACTERS])
        now = Trouble(what, text, storable(cure), before.since, before.times + 1)
        self._shelf.put(what, encode(now))

    def over(self, what: str) -> None:
        """Remove the note on a thing that works again."""
        self._shelf.remove(what)

    def all(self) -> list[Trouble]:
        """Return what is noted, by its names."""
        found = self._shelf.all()
        return [decode(found[what], type=Trouble) for what in sorted(found)]
