"""One watcher of the queue: what everybody shares who waits for something to happen there.

The store says what happened (`queue.events`), and this when to look at it.  A wait of the first
moment looks at the time of a file that each event changes, every few milliseconds, since most
verdicts come at once; a longer one waits for the kernel to tell (`doorbell`), and looks all the
same every now and then.

For a loop of its own (`selectors`, asyncio): `fileno` becomes readable when there may be something
to read; `wait(0)` quiets it, and has to be called every two seconds or so.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.gate.queue.events import Event, Events
from patchq.gate.queue.store import LOCKS

if TYPE_CHECKING:
    from patchq.gate.service.doorbell import Doorbell

_SOON_SECONDS = 0.15
_PAUSES = (0.001, 0.01)
_LOOK_SECONDS = 1.0  # how often one looks where nothing but time tells of changes


class Watcher:
    """Watches the queue at `root` for events behind the id `since`, or from now on.

    It may wait in one thread; `ring` may be called in another one, and in signal handlers.
    """

    def __init__(self, root: Path, since: str | None = None) -> None:
        self._root = root
        self._events = Events(root, since)
        self._bell: Doorbell | None = None
        self._mark: object = None
        self._rung = False

    def read(self, most: int | None = None) -> list[Event]:
        """Return the events since the last call, at most so many; it never waits."""
        self._mark = self._stamp()
        return self._events.read(most)

    @property
    def last(self) -> str:
        return self._events.last

    @property
    def lost(self) -> bool:
        return self._events.lost

    def wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False if there is not.

        Events since the last `read`, or `wait`, count.
        """
        until, pause = time.monotonic() + seconds, _PAUSES[0]
        soon = min(until, time.monotonic() + _SOON_SECONDS) if self._bell is None else 0.0
        while not self._changed():
            now = time.monotonic()
            if now >= until:
                return False
            if now < soon:
                time.sleep(min(pause, until - now))
                pause = min(pause * 1.2, _PAUSES[1])
            elif self._bell is None:
                self.fileno()
            else:
                self._bell.wait(min(until - now, _LOOK_SECONDS))
        return True

    def ring(self) -> None:
        """End the wait that is under way, or the next one."""
        self._rung = True
        if self._bell is not None:
            self._bell.ring()

    def fileno(self) -> int:
        if self._bell is None:
            from patchq.gate.service.doorbell import (
                Doorbell,
            )  # only who waits for long needs watchdog

            self._bell = Doorbell(self._root, "auto", _LOOK_SECONDS)
        return self._bell.fileno()

    def close(self) -> None:
        if self._bell is not None:
            self._bell.close()

    def _changed(self) -> bool:
        mark, rung = self._stamp(), self._rung
        if self._bell is not None:
            self._bell.wait(0.0)
        changed = rung or mark != self._mark
        self._mark, self._rung = mark, False
        return changed

    def _stamp(self) -> object:
        try:
            status = os.stat(self._root / LOCKS)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
