"""Lines of a text: which hold something, which patches and diffs are known by, which are fences,
and a text made of lines again.

Fences are the lines that open and close code in Markdown, and the tags that models use instead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress

from msgspec import Struct

Signed = tuple[str, str]
"""A line's sign in a diff or patch (a space, `+` or `-`) and its text."""

# What patches and diffs are known by, to every format that may stand round one or beside one.
BEGIN_PATCH = "*** Begin Patch"
"""The first line of a V4A patch."""
GIT = "diff --git "
"""How git begins what a diff says of a file."""
DIFF_LANGUAGES = ("diff", "patch", "udiff", "git-diff")
DIFF_ENDINGS = (".diff", ".patch", ".udiff", ".rej")

_SHORT = 120
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_MAY_FENCE = re.compile(r" {0,3}(?:```|~~~)|<").match
TAG_NAMES = ("source", "code", "pre", "codeblock", "sourcecode", "diff")
"""The tags that are fences."""
_TAG = re.compile(rf"^<(/?)({'|'.join(TAG_NAMES)})>([^<>]*)$")


def is_blank(line: str) -> bool:
    """Whether nothing stands on the line; one that holds blanks is a line like any other."""
    return not line.strip("\r")


def next_line(lines: Sequence[str], index: int) -> int:
    """The index of the first line behind `index` that is not blank; the lines' number if none."""
    index += 1
    while index < len(lines) and not lines[index].strip():
        index += 1
    return index


def line_above(lines: Sequence[str], index: int, low: int) -> int:
    """The index of the last line above `index` that is not blank; `low - 1` if there is none."""
    index -= 1
    while index >= low and not lines[index].strip():
        index -= 1
    return index


def joined(lines: Iterable[str]) -> str:
    """The lines as text, each ended by a newline."""
    return "\n".join([*lines, ""])


def halves(lines: Iterable[Signed]) -> tuple[str, str]:
    """The old and the new text of signed lines."""
    lines = list(lines)
    old = joined([text for sign, text in lines if sign != "+"])
    return old, joined([text for sign, text in lines if sign != "-"])


# ---------------------------------------------------------------- fences


class Fence(Struct, frozen=True):
    """One fence line: its kind (the character, or the tag's name), length and info."""

    kind: str
    length: int
    info: str = ""
    closing: bool = False
    """Whether it can only close (`</source>`)."""

    def closed_by(self, other: Fence) -> bool:
        """Whether `other` ends what this one opened."""
        ends = other.closing if self.kind.isalpha() else other.length >= self.length
        return ends and other.kind == self.kind and not other.info


def fence(line: str) -> Fence | None:
    """The line as a fence, or None."""
    if "```" not in line and "~~~" not in line and line[:1] != "<":
        return None
    return _recent(line) if len(line) < _SHORT else _read(line)


def _read(line: str) -> Fence | None:
    if match := _FENCE.match(line):
        kind, info = match[1][0], match[2].strip()
        return None if kind == "`" and "`" in info else Fence(kind, len(match[1]), info)
    match = _TAG.match(line)
    return match and Fence(match[2], 1, match[3].strip(), closing=bool(match[1]))


_recent = lru_cache(256)(_read)
"""A text has few different fence lines, and every form asks for each of them."""


def fences_from(
    lines: Sequence[str], start: int, end: int | None = None
) -> Iterator[tuple[int, Fence]]:
    """The fence lines from line `start` (an index) on, up to line `end` if there is one, and their
    indices, as they are asked for."""
    indices = range(start, len(lines) if end is None else end)
    for i in compress(indices, map(_MAY_FENCE, map(lines.__getitem__, indices))):
        if mark := fence(lines[i]):
            yield i, mark


class OpenFences:
    """Which fences are open while a text is read line by line, the innermost last.

    A bare line of at least the opening's length closes; a line with info opens, also inside.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Fence]] = []
        self._opened: set[int] = set()
        self._holding: set[int] = set()
        self.wrappers: set[int] = set()
        """The lines of the fences that were closed round a block."""
        self.closed: list[range] = []
        """From line to line (numbers), the outermost fences that were closed."""

    def read(self, index: int, mark: Fence) -> bool:
        """Take in the fence line `mark` at line `index`; returns whether it opens."""
        if self._stack and self._stack[-1][1].closed_by(mark):
            start, _ = self._stack.pop()
            if not self._stack:
                self.closed.append(range(start + 1, index + 2))
            if start in self._holding:
                self.wrappers |= {start, index}
            return False
        if mark.closing or (self._stack and not mark.info):
            return False
        self._stack.append((index, mark))
        self._opened.add(index)
        return True

    def opens(self, mark: Fence) -> bool:
        """Whether the fence line `mark` would open a fence here."""
        closes = bool(self._stack) and self._stack[-1][1].closed_by(mark)
        return not closes and not mark.closing and (bool(mark.info) or not self._stack)

    @property
    def are_open(self) -> bool:
        """Whether any fence is open."""
        return bool(self._stack)

    def opened(self, index: int) -> bool:
        """Whether the fence line at `index` was read as one that opens."""
        return index in self._opened

    @property
    def outermost(self) -> int | None:
        """The line of the first fence that is open."""
        return self._stack[0][0] if self._stack else None

    @property
    def count(self) -> int:
        """How many fences were opened."""
        return len(self._opened)

    def hold_block(self) -> None:
        """A block stands here: in all the fences that are open."""
        for start, _ in reversed(self._stack):
            if start in self._holding:
                break
            self._holding.add(start)

    def close(self, index: int) -> None:
        """End the fence that opened at `index`, and what is open inside of it."""
        while self._stack and self._stack[-1][0] >= index:
            self._stack.pop()


class FenceLines:
    """All fence lines of a text, found once, to see what stands in fences inside of a fence."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._marks = dict(fences_from(lines, 0))
        self._indices = list(self._marks)
        self._unclosed: dict[tuple[str, int, str, int], int] = {}
        """For each kind and length of an inner and an outer fence the position among the marks up
        to which the last inner one was sought to be closed, in vain."""

    def end_of_inner(self, index: int, outer: Fence) -> int | None:
        """Where the fence ends that opens at line `index` inside `outer`; None if none opens there.

        One that is not shorter than `outer`, or not closed before the next one, is none.
        """
        inner = self._marks.get(index)
        if inner is None or inner.length >= outer.length or inner.closing:
            return None
        kinds = inner.kind, inner.length, outer.kind, outer.length
        position = bisect_right(self._indices, index)
        if position <= self._unclosed.get(kinds, -1):
            return None
        while position < len(self._indices):
            mark = self._marks[i := self._indices[position]]
            if mark.info or outer.closed_by(mark):
                break
            if inner.closed_by(mark):
                return i
            position += 1
        self._unclosed[kinds] = position
        return None
