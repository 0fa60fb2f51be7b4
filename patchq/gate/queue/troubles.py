"""Things that do not work beside the queue: a hook that hangs, a remote that is dead.

None of them keeps a response from its verdict.  A process notes such a thing by its name, and
removes the note once it works again.  A note that cannot be written is left out.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from patchq.gate.errors import Fault
from patchq.gate.queue import store
from patchq.gate.queue.batches import Row, storable

_MOST_SAID = 400


class Trouble(Struct, frozen=True):
    """A thing that does not work, why, and the cure; `since` in seconds since the epoch."""

    what: str
    message: str
    cure: str
    since: float
    times: int = 1


class Troubles:
    """The troubles of the queue at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def note(self, what: str, message: str, cure: str) -> None:
        self._ask(
            "insert into troubles (what, message, cure, since, times)"
            " values (:what, :message, :cure, :since, 1) on conflict (what) do update set"
            " message = excluded.message, cure = excluded.cure, times = troubles.times + 1",
            what=what,
            message=storable(message[:_MOST_SAID]),
            cure=storable(cure),
            since=time.time(),
        )

    def over(self, what: str) -> None:
        """That works now."""
        if self._ask("select what from troubles where what = :what", what=what):
            self._ask("delete from troubles where what = :what", what=what)

    def all(self) -> list[Trouble]:
        """Return what is noted, by its names."""
        found = self._ask("select what, message, cure, since, times from troubles order by what")
        return [Trouble(*row) for row in found]

    def _ask(self, statement: str, **values: object) -> list[Row]:
        with suppress(Fault, OSError):
            return store.ask(self._root, statement, **values)
        return []
