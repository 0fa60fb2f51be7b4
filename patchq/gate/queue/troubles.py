"""What does not work beside the queue, for `status` and `doctor`: a hook that hangs, a remote that
is dead, a cache that takes nothing.

Nothing of it keeps a response from its verdict, so only the log of a process long gone would have a
word of it.  Whoever meets such a thing notes it, by the name of what does not work, and strikes it
out once that works again.  These are small files for people: what cannot be written is left out.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import asdict

from patchq.gate.git import files

FOLDER = "troubles"
_MOST_SAID = 400


class Trouble(Struct, frozen=True):
    """What does not work, why, and what to do; `since` in seconds since the epoch, and `times` that
    it was met."""

    what: str
    message: str
    cure: str
    since: float
    times: int = 1


class Troubles:
    """Those of the queue at `root`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._lock = Lock()

    def note(self, what: str, message: str, cure: str) -> None:
        with self._lock, suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            place = self._place(what)
            before = _read(place)
            since, times = (before.since, before.times) if before else (time.time(), 0)
            trouble = Trouble(what, message[:_MOST_SAID], cure, since, times + 1)
            data = json.dumps(asdict(trouble)).encode() + b"\n"
            files.replace(place, data, via=self._folder / f".{place.name}")

    def over(self, what: str) -> None:
        """That works now."""
        with suppress(OSError):
            self._place(what).unlink()

    def all(self) -> list[Trouble]:
        try:
            places = sorted(self._folder.iterdir())
        except OSError:
            return []
        return [known for place in places if place.name[0] != "." and (known := _read(place))]

    def _place(self, what: str) -> Path:
        return self._folder / quote(what, safe="")[:200]


def _read(place: Path) -> Trouble | None:
    try:
        return Trouble(**json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
