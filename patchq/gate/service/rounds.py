"""Times of the looks for changes that ring no bell: held batches, people, crashed commands."""

from __future__ import annotations

from time import monotonic

# Between two looks, also while responses come without a pause: what is held may wait for one.
LOOK_SECONDS = 2.0


class Rounds:
    """The looks of one process; the first is due at once."""

    def __init__(self) -> None:
        self._last, self._soon = monotonic(), True

    def soon(self) -> None:
        """Look again as soon as nothing comes in: something may have changed."""
        self._soon = True

    def due(self, came: bool) -> bool:
        """Return True if it is time to look, which begins another round.

        `came`: there were responses a moment ago.
        """
        self._soon = self._soon or came
        rested = monotonic() - self._last
        if rested < LOOK_SECONDS and (came or not self._soon):
            return False
        self._last, self._soon = monotonic(), False
        return True
