"""The lines that replacements of a base wrote: most quotes need not be looked for among them.

A line counts as whole as it stands now, so that a quote of it is known whoever wrote which part of
it.  Where that cannot be told at a small price all that follows is left to a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchq.core.model.values import Hunk
from patchq.core.plan.patches import Patch
from patchq.core.text.lines import Text, plain_typography

Neighbours = Callable[[int, int], Sequence[Patch]]
"""Gives the replacements that overlap or border on the bytes between two offsets of the base."""

_LONG_LINE = 1000
"""Of a longer line that is changed inside, it is not remembered what it is now."""


class WrittenLines:
    """Such lines of one base; a `Neighbours` is asked where a replacement is a part of a line."""

    def __init__(self, base: Text) -> None:
        self._base = base
        self._whole: set[bytes] = set()
        """Each as a whole, without blanks round it."""
        self._letters = bytearray()
        """The same lines, one behind the other."""
        self._unread: list[Hunk] = []
        """Replacements of the base whose lines are not among them yet; most are never asked for."""
        self._mingled = False
        """Whether two replacements met on one line, or one changed a long one, so that not all
        such lines are known."""

    def note(self, hunk: Hunk) -> None:
        """Say that bytes of the base were replaced."""
        self._unread.append(hunk)

    def fold(self, text: Text, hunk: Hunk, neighbours: Neighbours) -> None:
        """Say that bytes of `text`, which the replacements so far made, are to be replaced."""
        self._read(neighbours)
        if not self._mingled:
            self._remember(text, hunk.start, hunk.new, hunk.end)

    def may_hold(self, quote: bytes, neighbours: Neighbours, *, lines: bool) -> bool:
        """Whether a place of the quote, of whole `lines` or of characters, could reach into what
        was written; no means no."""
        self._read(neighbours)
        sought = [line for line in map(_bare, quote.split(b"\n")) if line]
        if self._mingled or not sought:
            return True
        if lines:
            return not self._whole.isdisjoint(sought)
        return any(line in self._letters for line in sought)

    def _read(self, neighbours: Neighbours) -> None:
        """Note the lines of the replacements that were made since."""
        for hunk in self._unread:
            if self._mingled:
                break
            first, last = self._remember(self._base, hunk.start, hunk.new, hunk.end)
            self._mingled |= (first, last) != (hunk.start, hunk.end) and any(
                other.start < hunk.start or hunk.end < other.end
                for other in neighbours(first, last)
            )
        self._unread.clear()

    def _remember(self, text: Text, start: int, new: bytes, end: int) -> tuple[int, int]:
        """Note the lines that stand now where the bytes `start:end` of `text` become `new`; returns
        the bytes of the text that are parts of them."""
        first, last = start, end
        if not begins_line(text, first):
            near = max(start - _LONG_LINE, 0)
            first = text.part(near, start).rfind(b"\n") + 1
            first += near if first else 0
        if not (begins_line(text, last) and new.endswith(b"\n")):
            last = text.part(end, min(end + _LONG_LINE, text.size)).find(b"\n") + 1
            last = end + last if last else text.size
        if max(start - first, last - end) > _LONG_LINE:
            self._mingled = True
        else:
            lines = (text.part(first, start) + new + text.part(end, last)).split(b"\n")
            bare = [_bare(line) for line in lines]
            self._whole.update(bare)
            self._letters += b"\n".join([*bare, b""])
        return first, last


def begins_line(text: Text, at: int) -> bool:
    """Whether a line begins at an offset."""
    return at in (0, text.offset) or text.part(at - 1, at) == b"\n"


def _bare(line: bytes) -> bytes:
    """A line as every reading may see it."""
    return plain_typography(line).strip()
