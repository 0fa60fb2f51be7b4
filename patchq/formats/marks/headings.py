"""What stands above a block: the line or the fence that names its path.

Read upwards from the opening marker, blank lines left out:

    path, or a sentence that names one        the outer line
    ```python path                            the fence; models open it twice at times
    path                                      the inner line
    <<<<<<< SEARCH

Each of them may be missing.  Two that name different paths make the block unreadable; a sentence
counts only where nothing else names one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchq.formats.marks.fences import Fence, fence
from patchq.formats.marks.lines import line_above
from patchq.formats.marks.paths import (
    Known,
    as_meant,
    path_line,
    path_of_info,
    path_of_sentence,
    word_line,
)
from patchq.formats.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class LinesAbove:
    """The indices of what stands above a block; the fences from the marker upwards, two at most."""

    inner: int | None = None
    fences: tuple[tuple[int, Fence], ...] = ()
    outer: int | None = None

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(i for i in (self.inner, self.outer) if i is not None)


@dataclass(frozen=True, slots=True)
class Heading:
    """`path` is None if nothing above the block names one."""

    path: str | None
    top: int
    """The index of the first line that belongs to the block."""
    named_on: frozenset[int] = frozenset()
    """The indices of the lines that name the path."""
    kept: tuple[int, ...] = ()
    """The indices of the lines from `top` on that are prose all the same."""


def heading_of(
    lines: Sequence[str], start: int, above: LinesAbove, known: Known, *, word: bool
) -> Heading:
    """The heading of the block that opens on line `start` (an index), with `above` over it.

    `word` says whether a single word without dot or slash may be a path that the base does not
    have.  Raises `Unreadable` where two paths are named.
    """
    whole = [(i, path_line(lines[i], known)) for i in above.lines]
    infos = [(i, path_of_info(mark.info, known)) for i, mark in above.fences]
    named = [(i, as_meant(path, known)) for i, path in (*whole, *infos) if path]
    if len({path for _, path in named}) > 1:
        raise _two_paths(start, sorted(named))
    if not named and word:
        words = [(i, word_line(lines[i])) for i in above.lines]
        named = [(i, path) for i, path in words if path][:1]
    sentences: list[tuple[int, str]] = []
    if not named:
        told = [(i, path_of_sentence(lines[i], known)) for i in above.lines]
        named = sentences = [(i, as_meant(path, known)) for i, path in told if path][:1]
    top = min([start, *(i for i, _ in above.fences), *(i for i, _ in named)])
    named_on = frozenset(i for i, _ in named)
    kept = {i for i in above.lines if i >= top and i not in named_on} | {i for i, _ in sentences}
    path = named[0][1] if named else None
    return Heading(path, top, named_on, tuple(sorted(kept)))


def _two_paths(start: int, named: Sequence[tuple[int, str]]) -> Unreadable:
    (one, first), (other, second) = named[0], next(n for n in named if n[1] != named[0][1])
    return Unreadable(
        start,
        f"expected one path for the block, found two: {first!r} on line {one + 1} and "
        f"{second!r} on line {other + 1}",
        "name the path once, alone on the line before the block",
    )


def look_above(
    lines: Sequence[str], start: int, low: int, opened: Callable[[int], bool]
) -> LinesAbove:
    """What stands above line `start`, down to line `low`.

    `opened` tells whether a fence line was read as one that opens.  A fence line right above the
    marker opens, whatever was left open before it; one above another line only if it was read so.
    """
    i = line_above(lines, start, low)
    if i < low:
        return LinesAbove()
    inner = None if fence(lines[i]) else i
    if inner is not None:
        i = line_above(lines, i, low)
    fences: list[tuple[int, Fence]] = []
    while len(fences) < 2 and i >= low and (mark := fence(lines[i])):
        if mark.closing or ((inner is not None or fences) and not opened(i)):
            break
        fences.append((i, mark))
        i = line_above(lines, i, low)
    outer = i if fences and i >= low and not fence(lines[i]) else None
    return LinesAbove(inner, tuple(fences), outer)
