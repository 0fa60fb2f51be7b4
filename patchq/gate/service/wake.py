"""Waits: for files in a directory, for events of the queue, or for a ring.

Events of the kernel are hints.  It drops them when too many come at once, and watchdog gives no
sign; a watch dies with its directory while the observer looks alive.  So no event is ever trusted
to have come: every wait is bounded, whoever waits looks at the inbox afterwards whatever the
answer, and the watch is set anew when the directory is another one.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from patchq.gate.queue.bell import Bell
from patchq.gate.queue.events import Event, Events
from patchq.gate.queue.store import LOCKS, identity

if TYPE_CHECKING:  # who only looks does without watchdog
    from watchdog.observers.api import BaseObserver

_CHECK_SECONDS = 2.0  # the longest wait between two looks at the watch itself
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


def _observer() -> BaseObserver:
    """Return an observer without the events of files that leave.

    Those are our own claims, and watchdog keeps each back for half a second, and all that follow
    with it.
    """
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify import InotifyEmitter
    from watchdog.observers.inotify_c import InotifyConstants, Mask

    class Emitter(InotifyEmitter):
        def get_event_mask_from_filter(self) -> Mask:
            return Mask(
                InotifyConstants.IN_CREATE
                | InotifyConstants.IN_CLOSE_WRITE
                | InotifyConstants.IN_MOVED_TO
                | InotifyConstants.IN_ATTRIB
                | InotifyConstants.IN_DELETE
                | InotifyConstants.IN_DELETE_SELF
            )

    return BaseObserver(Emitter)


class Doorbell(Bell):
    """Rings when an entry of the directory `inbox` may have become complete.

    With the mode `poll`, on systems without inotify, or where the kernel's limits leave no watch
    (`warning` then says so), only time rings.
    """

    def __init__(self, inbox: Path, mode: Literal["auto", "poll"], poll_seconds: float) -> None:
        super().__init__()
        self.warning: str | None = None
        self._inbox = inbox
        self._poll_seconds = poll_seconds
        # Whether nothing but time tells of new files.
        self.polling = mode == "poll" or sys.platform != "linux"
        self._observer: BaseObserver | None = None
        self._watched: tuple[int, int] | None = None
        self._watch()

    def wait(self, seconds: float, *others: int) -> set[int]:
        """Wait as a bell does, but no longer than `poll_seconds`; not at all if set anew."""
        if self._watch():
            self.ring()
        longest = self._poll_seconds if self.polling else min(self._poll_seconds, _CHECK_SECONDS)
        return super().wait(min(seconds, longest), *others)

    def dispatch(self, event: object) -> None:
        self.ring()

    def close(self) -> None:
        self._unwatch()
        super().close()

    def _watch(self) -> bool:
        """Watch the directory of that name; return True if it was not watched."""
        if self.polling:
            return False
        now = identity(self._inbox)
        # A new directory may get the number of the old one, but its emitter ended with that.
        emitters = self._observer.emitters if self._observer is not None else ()
        if emitters and now == self._watched and all(emitter.is_alive() for emitter in emitters):
            return False
        self._unwatch()
        if now is None:
            return False
        observer = _observer()
        try:
            observer.schedule(self, str(self._inbox))  # type: ignore[arg-type]
            observer.start()
        except OSError as error:
            if error.errno not in _ABSENT:
                self.polling = True
                self.warning = (
                    f"the inbox cannot be watched ({error.strerror}); it is looked at every "
                    f"{self._poll_seconds:g} s instead (see the sysctls fs.inotify.*)"
                )
            return False
        self._observer, self._watched = observer, now
        return True

    def _unwatch(self) -> None:
        observer, self._observer, self._watched = self._observer, None, None
        if observer is not None:
            observer.stop()
            observer.join(_CHECK_SECONDS)


class Watcher(Events):
    """Events of the queue at `root` after the id `since`, and waits for them.

    It looks at the time of a file that each event changes: at first every millisecond, since most
    verdicts come at once, and ever less often.

    Once `stopped` returns True, no wait lasts.
    """

    def __init__(
        self, root: Path, since: str | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(root, since)
        self._stopped = stopped
        self._mark: object = None

    def read(self, most: int | None = None) -> list[Event]:
        """Return the events since the last call, at most so many; it never waits."""
        self._mark = self._stamp()
        return super().read(most)

    def wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False if there is not.

        Events since the last `read`, or `wait`, count.
        """
        until, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while not self._changed():
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 1.2, _LONGEST_PAUSE)
        return True

    def _changed(self) -> bool:
        before, self._mark = self._mark, self._stamp()
        return self._mark != before or self._stopped()

    def _stamp(self) -> object:
        try:
            status = os.stat(self._root / LOCKS)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
