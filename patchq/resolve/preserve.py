"""What a match writes: only what the two halves do not share.

The halves are aligned as they were written.  What they share keeps the file's own bytes, so that a
damaged quote is never written back; only new lines are written, shifted as the quote was, with the
file's own line end.
"""

from __future__ import annotations

from patchq.lcs import line_diff
from patchq.model import Hunk
from patchq.resolve.readings import Lines, Unreadable
from patchq.resolve.search import Place, Shift
from patchq.text import Text, content


def hunks(text: Text, place: Place) -> tuple[Hunk, ...]:
    """The changes that put `place.new` where `place.old` stands, front to back.

    Raises `readings.Unreadable` when a new line lacks the indentation that has to be taken off.
    """
    old = [line.removesuffix(b"\r") for line in place.old]
    new = [line.removesuffix(b"\r") for line in place.new]
    blocks = line_diff(old, new)
    kept = set(range(len(old))).difference(*(range(a0, a1) for a0, a1, _, _ in blocks))
    moved = _movable(old, kept)
    return tuple(_hunk(text, place, block, new, moved) for block in blocks)


def _movable(old: Lines, kept: set[int]) -> dict[bytes, int]:
    """For each quoted line the index whose bytes a new line equal to it takes: rather one that
    goes away, since then the line was moved."""
    source: dict[bytes, int] = {}
    for i, line in enumerate(old):
        if line.strip() and (line not in source or (source[line] in kept and i not in kept)):
            source[line] = i
    return source


def _hunk(
    text: Text, place: Place, block: tuple[int, int, int, int], new: Lines, moved: dict[bytes, int]
) -> Hunk:
    a0, a1, b0, b1 = block
    written = []
    for line in new[b0:b1]:
        if line in moved:
            written.append(content(text.lines[place.start + moved[line]]))
        else:
            written.append(shifted(line, place.shift))
    return lines_hunk(text, place.start + a0, place.start + a1, written)


def lines_hunk(text: Text, start: int, end: int, written: Lines) -> Hunk:
    """Put the lines `written` (without ends) in place of the text's lines `start:end`.  A final
    newline that is missing stays missing."""
    ends = text.line_end
    first, last = text.starts[start], text.starts[end]
    data = b"".join(line + ends for line in written)
    if end < len(text.lines) or not text.lacks_final_newline:
        return Hunk(first, last, data)
    if start == len(text.lines):
        return Hunk(first, last, ends + data.removesuffix(ends) if data else b"")
    if not data and start > 0:
        return Hunk(text.starts[start - 1] + len(content(text.lines[start - 1])), last, b"")
    return Hunk(first, last, data.removesuffix(ends))


def shifted(line: bytes, shift: Shift) -> bytes:
    """A new line, moved as the quote was."""
    if not line.strip():
        return line
    if shift.removed and not line.startswith(shift.removed):
        raise Unreadable(
            "a new line lacks the indentation that every quoted line has too much: "
            + repr(line.decode("utf-8", "replace"))
        )
    return shift.added + line[len(shift.removed) :]
