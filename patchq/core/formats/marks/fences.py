"""Lines of a text: blank ones, marks of patches and diffs, fences, and tags used as fences."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, pairwise

from msgspec import Struct

Signed = tuple[str, str]  # a line's sign in a diff or patch (a space, `+` or `-`) and its text

# What patches and diffs are known by, to every format that may stand round one or beside one.
BEGIN_PATCH = "*** Begin Patch"  # the first line of a V4A patch
GIT = "diff --git "  # how git begins what a diff says of a file
DIFF_LANGUAGES = ("diff", "patch", "udiff", "git-diff")
DIFF_ENDINGS = (".diff", ".patch", ".udiff", ".rej")
TAG_NAMES = ("source", "code", "pre", "codeblock", "sourcecode", "diff")  # the tags that are fences
USUAL_LENGTH = 3
_SHORT = 120
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_MAY_FENCE = re.compile(r" {0,3}(?:```|~~~)|<").match
_TAG = re.compile(rf"^<(/?)({'|'.join(TAG_NAMES)})>([^<>]*)$")


def is_blank(line: str) -> bool:
    """Return whether the line is empty.

    A line of blanks is not.
    """
    return not line.strip("\r")


def next_line(lines: Sequence[str], index: int) -> int:
    """Return the index of the first line behind `index` that is not blank.

    It is the number of lines if there is none.
    """
    index += 1
    while index < len(lines) and not lines[index].strip():
        index += 1
    return index


def line_above(lines: Sequence[str], index: int, low: int) -> int:
    """Return the index of the last line above `index` that is not blank.

    It is `low - 1` if there is none.
    """
    index -= 1
    while index >= low and not lines[index].strip():
        index -= 1
    return index


def joined(lines: Iterable[str]) -> str:
    """Return the lines as text, each ended by a newline."""
    return "\n".join([*lines, ""])


def halves(lines: Iterable[Signed]) -> tuple[str, str]:
    """Return the old and the new text of signed lines."""
    lines = list(lines)
    old = joined([text for sign, text in lines if sign != "+"])
    return old, joined([text for sign, text in lines if sign != "-"])


class Fence(Struct, frozen=True):
    """One fence line: its kind (the character, or the tag's name), length and info."""

    kind: str
    length: int
    info: str = ""
    closing: bool = False  # true if it can only close (`</source>`)

    def closed_by(self, other: Fence) -> bool:
        """Return whether `other` closes this fence."""
        ends = other.closing if self.kind.isalpha() else other.length >= self.length
        return ends and other.kind == self.kind and not other.info


def fence(line: str) -> Fence | None:
    """Return the line as a fence, or None."""
    if "```" not in line and "~~~" not in line and line[:1] != "<":
        return None
    return _recent(line) if len(line) < _SHORT else _read(line)


def _read(line: str) -> Fence | None:
    if match := _FENCE.match(line):
        kind, info = match[1][0], match[2].strip()
        return None if kind == "`" and "`" in info else Fence(kind, len(match[1]), info)
    match = _TAG.match(line)
    return match and Fence(match[2], 1, match[3].strip(), closing=bool(match[1]))


_recent = lru_cache(256)(_read)  # responses have few different fence lines


class Fences:
    """The fence lines of a text, and which are open as it is read.

    A bare line of at least the opening's length closes; a line with info opens, also inside.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._marks: dict[int, Fence] = {}
        self._indices: list[int] = []
        self._stack: list[int] = []
        self._opened: set[int] = set()
        # From which line on which fence is the innermost that is open.
        self._changes: list[tuple[int, Fence | None]] = [(0, None)]
        self.look_again(0, len(lines))

    def look_again(self, start: int, end: int) -> None:
        """Take in the lines `start:end`, which have changed."""
        low, high = bisect_left(self._indices, start), bisect_left(self._indices, end)
        for i in self._indices[low:high]:
            del self._marks[i]
        may = compress(range(start, end), map(_MAY_FENCE, self._lines[start:end]))
        found = {i: mark for i in may if (mark := fence(self._lines[i]))}
        self._indices[low:high] = found
        self._marks |= found

    def at(self, i: int) -> Fence | None:
        """Return line `i` as a fence, or None."""
        return self._marks.get(i)

    def behind(self, i: int) -> Iterator[tuple[int, Fence]]:
        """Yield the fence lines behind line `i`, and their indices."""
        for k in range(bisect_right(self._indices, i), len(self._indices)):
            yield self._indices[k], self._marks[self._indices[k]]

    def end(self, start: int, mark: Fence) -> int:
        """Return the index of the line that ends the fence of line `start`.

        It is the number of lines if none does.
        """
        nested = [mark]
        for i, other in self.behind(start):
            if nested[-1].closed_by(other):
                nested.pop()
                if not nested:
                    return i
            elif other.info and other.kind == mark.kind and other.length >= nested[-1].length:
                nested.append(other)
        return len(self._lines)

    def inside(self, outer: Fence, start: int) -> Iterator[range]:
        """Yield the lines of the shorter fences inside `outer` behind line `start`."""
        opened: tuple[int, Fence] | None = None
        for i, mark in self.behind(start):
            if outer.closed_by(mark):
                return
            if opened and opened[1].closed_by(mark):
                yield range(opened[0], i)
                opened = None
            elif mark.length < outer.length and (not opened or opened[1].kind == mark.kind):
                opened = i, mark

    # ------------------------------------------------------------ as the text is read

    def read(self, i: int) -> None:
        """Take in line `i`, a fence line outside of every edit."""
        mark = self._marks[i]
        if self._stack and self._marks[self._stack[-1]].closed_by(mark):
            self.close(self._stack[-1], i)
        elif self.opens(mark):
            self._stack.append(i)
            self._opened.add(i)
            self._changes.append((i, mark))

    def opens(self, mark: Fence) -> bool:
        """Return whether the fence line `mark` would open a fence here."""
        closes = bool(self._stack) and self._marks[self._stack[-1]].closed_by(mark)
        return not closes and not mark.closing and (bool(mark.info) or not self._stack)

    def opened(self, i: int) -> bool:
        """Return whether line `i` was read as the opening of a fence."""
        return i in self._opened

    @property
    def outermost(self) -> int | None:
        """The line of the first fence that is open."""
        return self._stack[0] if self._stack else None

    def close(self, start: int, i: int) -> None:
        """Close on line `i` the fence opened on line `start`, and all inside it."""
        while self._stack and self._stack[-1] >= start:
            self._stack.pop()
        self._changes.append((i, self._marks[self._stack[-1]] if self._stack else None))

    def innermost(self) -> list[Fence | None]:
        """Return the innermost open fence of each line."""
        found: list[Fence | None] = []
        for (start, mark), (end, _) in pairwise([*self._changes, (len(self._lines), None)]):
            found += [mark] * (end - start)
        return found
