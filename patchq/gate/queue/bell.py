"""A bell ends the wait of one thread; other threads and handlers of signals ring it."""

from __future__ import annotations

import os
import select
from contextlib import suppress


class Bell:
    """A pipe that can be read while the bell rings.

    A `threading.Event` would not do: its lock would be taken twice by a signal handler that rings
    while the same thread is about to wait.
    """

    def __init__(self) -> None:
        self._bell, self._rope = os.pipe()
        for fd in (self._bell, self._rope):
            os.set_blocking(fd, False)

    def ring(self) -> None:
        """End the wait under way, or the next; safe in signal handlers and threads."""
        with suppress(OSError):  # it rings already, or is closed
            os.write(self._rope, b"\0")

    def wait(self, seconds: float, *others: int) -> set[int]:
        """Wait for a ring, or for other descriptors; return those that can be read."""
        poll = select.poll()
        for fd in (self._bell, *others):
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        with suppress(BlockingIOError):
            os.read(self._bell, 1 << 16)  # all that a pipe holds
            ready.add(self._bell)  # it may ring since
        return ready

    def close(self) -> None:
        """Close the pipe; a later ring does nothing."""
        ends, self._bell, self._rope = (self._bell, self._rope), -1, -1
        for fd in ends:
            with suppress(OSError):
                os.close(fd)
