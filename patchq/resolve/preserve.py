"""What a match writes: only what the two halves do not share.

The halves are aligned as they were written.  What they share keeps the file's own bytes, so that a
damaged quote is never written back; only new lines are written, shifted as the quote was, with the
file's own line end.
"""

from __future__ import annotations

from patchq.model.values import Hunk, LineHunk
from patchq.resolve.readings import Lines, Unreadable
from patchq.resolve.search import NO_SHIFT, Shift, shifted
from patchq.text.line_diff import line_diff
from patchq.text.lines import TYPOGRAPHIC, Text


class Rewrite:
    """How the new half of a quote differs from the old one, wherever that stands."""

    def __init__(self, old: Lines, new: Lines) -> None:
        self._old = [line.removesuffix(b"\r") for line in old]
        self._new = [line.removesuffix(b"\r") for line in new]
        self._blocks = line_diff(self._old, self._new)
        self._moved = self._movable()

    @property
    def changes(self) -> bool:
        return bool(self._blocks)

    def at(self, text: Text, start: int, shift: Shift = NO_SHIFT) -> tuple[Hunk, ...]:
        """The changes that put the new half where the old one stands, from line `start` on.

        Raises `readings.Unreadable` when a new line cannot be written there as it was meant.
        """
        curled = self._curled(text, start)
        return tuple(self._hunk(text, start, shift, block, curled) for block in self._blocks)

    def _movable(self) -> dict[bytes, int]:
        """For each quoted line the index whose bytes a new line equal to it takes: rather one that
        goes away, since then the line was moved.  An empty line is written as it is."""
        gone = {i for a0, a1, _, _ in self._blocks for i in range(a0, a1)}
        source: dict[bytes, int] = {}
        for i, line in enumerate(self._old):
            if line and (line not in source or (source[line] not in gone and i in gone)):
                source[line] = i
        return source

    def _hunk(
        self, text: Text, start: int, shift: Shift, block: LineHunk, curled: frozenset[str]
    ) -> Hunk:
        a0, a1, b0, b1 = block
        written = []
        for line in self._new[b0:b1]:
            if line in self._moved:
                written.append(text.lines[start + self._moved[line]])
            else:
                written.append(_new_line(line, shift, curled) + text.line_end)
        return Hunk(text.starts[start + a0], text.starts[start + a1], b"".join(written))

    def _curled(self, text: Text, start: int) -> frozenset[str]:
        """The typographic characters that the quote has where the file has plain ones."""
        quoted = b"\n".join(self._old)
        if quoted.isascii():
            return frozenset()
        there = b"".join(text.lines[start : start + len(self._old)])
        return typographic(quoted) - typographic(there)


def _new_line(line: bytes, shift: Shift, curled: frozenset[str]) -> bytes:
    moved = shifted(line, shift)
    if moved is None:
        raise Unreadable(
            "a new line lacks the indentation that every quoted line has too much: "
            + repr(line.decode("utf-8", "replace"))
        )
    if curled and curled & typographic(line):
        raise Unreadable(
            "a new line has typographic characters that the file has as plain ones where they are "
            "quoted: " + repr(line.decode("utf-8", "replace"))
        )
    return moved


def typographic(data: bytes) -> frozenset[str]:
    """The curly quotes, dashes and no-break spaces among the characters."""
    return TYPOGRAPHIC.intersection(data.decode("utf-8", "surrogateescape"))
