"""Changes to an old text, carried to the text as it is now.

Both sides are runs of lines of the old text: what the batch changes, and what was changed since.
A batch's change may move only where its lines, and one line on either side, were not touched.
Where only a neighbouring line was touched, the caller may know better: a quote that holds the new
neighbour shows that its author has seen it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchq.core.model.values import LineHunk
from patchq.core.text.lines import split_lines

Lines = tuple[int, int]  # first and end, 0-based and half-open


class Touch(Struct, frozen=True):
    """A change of the batch and one of the others that meet; both are runs of old lines, `now` is
    where the others' run is today.  They are the `same` change, or only border on each other
    (`beside`), or contradict."""

    ours: Lines
    theirs: Lines
    now: Lines
    same: bool
    beside: bool


def carry_lines(
    before: bytes,
    after: bytes,
    now: bytes,
    ours: Sequence[LineHunk],
    theirs: Sequence[LineHunk],
) -> tuple[bytes, tuple[Touch, ...]]:
    """Make on `now` the change that made `after` of `before`.

    The second value says where the two sides touch.  `ours` and `theirs` are the changed runs of
    `before` to `after`, and to `now`.
    """
    old, wanted, present = map(split_lines, (before, after, now))
    lines: list[bytes] = []
    touches: list[Touch] = []
    position = 0
    for a0, a1, b0, b1 in ours:
        run, new = (a0, a1), wanted[b0:b1]
        met = [block for block in theirs if block[0] <= a1 and a0 <= block[1]]
        twin = next((block[2:] for block in met if block[:2] == run), (0, 0))
        if _is_telling(old[a0:a1], new) and present[slice(*twin)] == new:
            touches.append(Touch(run, run, twin, same=True, beside=False))
            continue
        touches += [
            Touch(run, block[:2], block[2:], same=False, beside=not _overlap(run, block[:2]))
            for block in reversed(met)
        ]
        start = shifted(a0, theirs)
        lines += [*present[position:start], *new]
        position = start + a1 - a0
    lines += present[position:]
    return b"".join(lines), tuple(touches)


def image(lines: Lines, theirs: Sequence[LineHunk]) -> Lines:
    """Return the present place of a run of old lines; a change in it counts as a whole."""
    first, end = lines
    start, stop = shifted(first, theirs), shifted(end, theirs)
    for a0, a1, b0, b1 in theirs:
        if a0 < first < a1:
            start = b0
        if a0 < end < a1:
            stop = b1
    return start, max(start, stop)


def shifted(line: int, theirs: Sequence[LineHunk]) -> int:
    """Return the present number of an old line.

    Only changes that end at or before it count.
    """
    return line + sum((b1 - b0) - (a1 - a0) for a0, a1, b0, b1 in theirs if a1 <= line)


def inclusive(lines: Lines) -> Lines:
    """Return lines as reports count them; an empty run has the line before it."""
    return (lines[0] + 1, lines[1]) if lines[0] < lines[1] else (max(lines[0], 1),) * 2


def _is_telling(old: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Return True if the new lines show that a change was made.

    An added line with a letter or digit does.  That the same lines are gone shows nothing, as they
    may have moved.
    """
    added = (line.decode("utf-8", "replace") for line in new if line not in old)
    return any(char.isalnum() for line in added for char in line)


def _overlap(one: Lines, other: Lines) -> bool:
    """Return True if two runs intersect, or insert at the same point."""
    return (one[0] < other[1] and other[0] < one[1]) or one == other
