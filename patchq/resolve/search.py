"""Where a quote of whole lines stands in a text, at one level of the ladder.

The cost is linear in the text whatever it repeats: runs of lines are found by one substring
search, and a uniform shift of the indentation by searching for how the indentation *changes* from
line to line, which a shift leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from patchq.resolve.readings import Level, Lines, Normalise, Quote
from patchq.text import Text

MOST_PLACES = 50
"""More places than these are not told apart; every report says at most so many."""
_MOST_EDGE_BLANKS = 4
_CHECKED_ONE_BY_ONE = 64


@dataclass(frozen=True, slots=True)
class Shift:
    """The indentation that the text has more (`added`) or less (`removed`) than the quote."""

    added: bytes = b""
    removed: bytes = b""


@dataclass(frozen=True, slots=True)
class Place:
    """The text's lines `start:end` (0-based, half-open) read as the quote's `old` and `new`."""

    start: int
    end: int
    old: Lines
    new: Lines
    shift: Shift = Shift()


def places(text: Text, quote: Quote, level: Level) -> list[Place]:
    """Where `quote.old` stands, at most `MOST_PLACES`.  Blank lines at its edges are given up, in
    pairs, only if it stands nowhere with them."""
    for old, new in edges(quote) if level.edges else [(quote.old, quote.new)]:
        found = [
            Place(start, start + len(old), old, new, shift)
            for start, shift in islice(find(text, old, level), MOST_PLACES)
        ]
        if found:
            return found
    return []


def edges(quote: Quote) -> Iterator[tuple[Lines, Lines]]:
    """The halves with ever more blank lines dropped: none, in front, behind, on both edges."""
    old, new = quote.old, quote.new
    front = range(1, _droppable(old, new) + 1)
    behind = range(1, _droppable(old[::-1], new[::-1]) + 1)
    drops = [(0, 0), *((k, 0) for k in front), *((0, k) for k in behind)]
    drops += [(i, k) for i in front for k in behind if i + k < len(old)]
    for i, k in drops:
        yield old[i : len(old) - k], new[i : len(new) - k] if new else new


def _droppable(old: Lines, new: Lines) -> int:
    """How many blank lines `old` can lose in front; `new`, unless empty, has to lose them too."""
    if not any(line.strip() for line in old):
        return 0
    count = _leading_blanks(old)
    if new:
        count = min(count, _leading_blanks(new))
    return min(count, _MOST_EDGE_BLANKS)


def _leading_blanks(lines: Lines) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def find(text: Text, quote: Lines, level: Level) -> Iterator[tuple[int, Shift]]:
    if not quote:
        return
    if level.raw:
        yield from ((i, Shift()) for i in text.raw_view.find(quote))
        return
    wanted = level.normalise([line.removesuffix(b"\r") for line in quote])
    if level.shifts:
        yield from _find_shifted(text, wanted, level.normalise)
    else:
        yield from ((i, Shift()) for i in text.view(level.normalise).find(wanted))


def _find_shifted(text: Text, quote: Lines, normalise: Normalise) -> Iterator[tuple[int, Shift]]:
    lines = text.view(normalise).lines
    first = _leading_blanks(quote)
    if first == len(quote):
        yield from ((i, Shift()) for i in text.view(normalise).find(quote))
        return
    bare = [line.lstrip() for line in quote]
    view = text.view(_bare(normalise))
    few = list(islice(view.find(bare), _CHECKED_ONE_BY_ONE))
    if len(few) < _CHECKED_ONE_BY_ONE:
        for start in few:
            shift = _shift_between(quote[first], lines[start + first])
            if shift and all(
                _shifted(line, shift) == lines[start + i] for i, line in enumerate(quote)
            ):
                yield start, shift
        return
    # Many alike: compare how the indentation changes instead, which needs no second look.
    changes = _changes(quote)[first + 1 :]
    behind: Iterator[int] = iter(view.find([bare[first]]))
    if changes:
        behind = (i - 1 for i in text.view(_changes_of(normalise)).find(changes))
    for at in behind:
        start = at - first
        if start < 0 or lines[at].lstrip() != bare[first] or any(lines[start:at]):
            continue
        shift = _shift_between(quote[first], lines[at])
        if shift:
            yield start, shift


def _shift_between(quoted: bytes, line: bytes) -> Shift | None:
    """What turns the quoted line's indentation into the line's; None if no one string does."""
    ours, theirs = _indent(quoted), _indent(line)
    if theirs.endswith(ours):
        return Shift(added=theirs[: len(theirs) - len(ours)])
    if ours.endswith(theirs):
        return Shift(removed=ours[: len(ours) - len(theirs)])
    return None


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


def _shifted(line: bytes, shift: Shift) -> bytes | None:
    if not line:
        return line
    if shift.removed:
        return line[len(shift.removed) :] if line.startswith(shift.removed) else None
    return shift.added + line


def _changes(lines: Lines) -> Lines:
    """Each line as its text and what its indentation and the one before it do not share."""
    before = b""
    told = []
    for line in lines:
        if not line:
            told.append(line)
            continue
        indent = _indent(line)
        shared = 0
        for a, b in zip(before, indent, strict=False):
            if a != b:
                break
            shared += 1
        told.append(b"\0".join((line[len(indent) :], before[shared:], indent[shared:])))
        before = indent
    return told


@cache
def _bare(normalise: Normalise) -> Normalise:
    return lambda lines: [line.strip() for line in normalise(lines)]


@cache
def _changes_of(normalise: Normalise) -> Normalise:
    return lambda lines: _changes(normalise(lines))
