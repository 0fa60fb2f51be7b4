"""The places of a quote of whole lines in a text, at one match level.

Runs of lines are found by one substring search; for a uniform shift of the indentation by one among
lines without it, and one for the quote with each indentation that is found so.

At the rung `elided` a `...` line in both halves stands for lines that both leave out.  The quote is
then a chain of pieces, in order, all of them shifted alike.  A piece that changes may have several
places; every combination of them is a chain of its own, so that the caller can judge by what they
write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from heapq import merge
from itertools import islice, repeat
from operator import itemgetter
from typing import TypeVar

from msgspec import Struct

from patchq.core.resolve.readings import Level, Lines, Quote, has_text, pieces
from patchq.core.text.lines import Normalise, Text

MOST_PLACES = 50
"""More places than these are not told apart; every report says at most so many."""
_MOST_EDGE_BLANKS = 4
_MOST_INDENTS = 64
"""A quote that fits as many lines of other indentations is nowhere, since each takes a search."""
_INDENTATION = b" \t"


class Shift(Struct, frozen=True):
    """The indentation that the text has more (`added`) or less (`removed`) than the quote."""

    added: bytes = b""
    removed: bytes = b""


NO_SHIFT = Shift()


class CharRange(Struct, frozen=True):
    """The bytes `start:end` of `Text.whole`."""

    start: int
    end: int


class LineRange(Struct, frozen=True):
    """The lines `start:end` (0-based, half-open), read as the quote's `old` and `new`."""

    start: int
    end: int
    old: Lines
    new: Lines
    shift: Shift = NO_SHIFT


S = TypeVar("S", CharRange, LineRange)

Chain = tuple[LineRange, ...]
"""A place for each piece of a quote, front to back."""


def ways(text: Text, quote: Quote, level: Level, most: int | None = MOST_PLACES + 1) -> list[Chain]:
    """Return the ways in which `quote.old` is in the text, a quote without gaps as one piece.

    One more than `MOST_PLACES` means: in more ways than these.  Chains differ in pieces that change
    only.  Blank lines at the edges are given up, in pairs, only if it is nowhere with them.
    """
    for old, new in edges(quote) if level.edges else ((quote.old, quote.new),):
        if quote.rung == "elided":
            found = list(islice(_chains(text, old, new, level), most))
        else:
            size = len(old)
            found = [
                (LineRange(start, start + size, old, new, shift),)
                for start, shift in islice(find(text, old, level), most)
            ]
        if found:
            return found
    return []


def apart(found: Iterable[S]) -> list[S]:
    """Those that do not overlap one before them, from left to right."""
    kept: list[S] = []
    for span in found:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def edges(quote: Quote) -> Iterator[tuple[Lines, Lines]]:
    """The halves with ever more blank lines dropped: none, in front, behind, on both edges."""
    old, new = quote.old, quote.new
    front = range(1, _droppable(old, new) + 1)
    behind = range(1, _droppable(old[::-1], new[::-1]) + 1)
    drops = [(0, 0), *((k, 0) for k in front), *((0, k) for k in behind)]
    drops += [(i, k) for i in front for k in behind if not new or i + k <= len(new)]
    for i, k in drops:
        yield old[i : len(old) - k], new[i : len(new) - k] if new else new


def _droppable(old: Lines, new: Lines) -> int:
    """Return the number of blank lines that `old` and `new`, unless empty, can lose in front."""
    if not any(line.strip() for line in old):
        return 0
    return min(_MOST_EDGE_BLANKS, *map(_leading_blanks, [old, new] if new else [old]))


def _leading_blanks(lines: Lines) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def find(text: Text, quote: Lines, level: Level) -> Iterator[tuple[int, Shift]]:
    """The line (0-based) of every place at which `quote` begins, and its shift there."""
    if not quote:
        return iter(())
    wanted = level.normalise(quote) if level.normalise else quote
    if level.shifts and any(line.strip() for line in wanted):
        return _find_shifted(text, wanted, level.normalise)
    return zip(text.view(level.normalise).find(wanted), repeat(NO_SHIFT))


def _find_shifted(
    text: Text, quote: Lines, normalise: Normalise | None
) -> Iterator[tuple[int, Shift]]:
    """Return the places at which all lines have one indentation more, or one less, than quoted."""
    view, first = text.view(normalise), _leading_blanks(quote)
    bare = text.view(_as_read(_without_indentation, normalise)).find(_without_indentation(quote))
    indents = {indentation(view.lines[i + first]) for i in bare}
    found = []
    for indent in indents if len(indents) <= _MOST_INDENTS else ():
        if shift := _shift_between(indentation(quote[first]), indent):
            moved = [shifted(line, shift) for line in quote]
            there = [line for line in moved if line is not None]
            found += [zip(view.find(there), repeat(shift))] if len(there) == len(quote) else []
    return merge(*found, key=itemgetter(0))


def _shift_between(ours: bytes, theirs: bytes) -> Shift | None:
    """Return what turns one indentation into the other; None if no one string does."""
    if theirs.endswith(ours):
        return Shift(added=theirs[: len(theirs) - len(ours)])
    if ours.endswith(theirs):
        return Shift(removed=ours[: len(ours) - len(theirs)])
    return None


def indentation(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(_INDENTATION))]


def shifted(line: bytes, shift: Shift) -> bytes | None:
    """The quote's line as the text has it; None if it lacks what has to be taken off.  A blank
    line stays."""
    if not line.strip():
        return line
    if not line.startswith(shift.removed):
        return None
    return shift.added + line[len(shift.removed) :]


def _without_indentation(lines: Lines) -> Lines:
    return [line.lstrip(_INDENTATION) for line in lines]


@cache
def _as_read(read: Normalise, normalise: Normalise | None) -> Normalise:
    """One function for each choice, so that a text can keep what it gave."""
    return lambda lines: read(normalise(lines) if normalise else lines)


# ---------------------------------------------------------------- lines left out


class _Piece(Struct, frozen=True):
    old: Lines
    new: Lines
    starts: list[int]
    """The lines at which it stands, in order."""


def _chains(text: Text, old: Lines, new: Lines, level: Level) -> Iterator[Chain]:
    old_pieces, new_pieces = pieces(old), pieces(new)
    if any(next(iter(find(text, piece, level)), None) is None for piece in old_pieces):
        return
    found = [_by_shift(text, piece, level) for piece in old_pieces]
    shown = next(i for i, piece in enumerate(old_pieces) if has_text(piece))
    for shift in found[shown]:
        chain = [
            _Piece(o, n, starts.get(shift if has_text(o) else NO_SHIFT, []))
            for o, n, starts in zip(old_pieces, new_pieces, found, strict=True)
        ]
        for starts in _successions(chain):
            yield tuple(
                LineRange(start, start + len(piece.old), piece.old, piece.new, shift)
                for start, piece in zip(starts, chain, strict=True)
            )


def _by_shift(text: Text, piece: Lines, level: Level) -> dict[Shift, list[int]]:
    starts: dict[Shift, list[int]] = {}
    for start, shift in find(text, piece, level):
        starts.setdefault(shift, []).append(start)
    return starts


def _successions(chain: list[_Piece]) -> list[tuple[int, ...]]:
    """The pieces' starts in every way that they can follow each other, at most `MOST_PLACES` and
    one; a piece that does not change takes its first place behind the one before."""
    latest = _latest(chain)
    if latest is None:
        return []
    ways: list[tuple[int, ...]] = [()]
    behind = 0
    for piece, last in zip(chain, latest, strict=True):
        grown: list[tuple[int, ...]] = []
        for way in ways:
            low = way[-1] + behind if way else 0
            first = bisect_left(piece.starts, low)
            stop = bisect_right(piece.starts, last) if piece.old != piece.new else first + 1
            room = MOST_PLACES + 1 - len(grown)
            grown += [(*way, start) for start in piece.starts[first : min(stop, first + room)]]
        ways, behind = grown, len(piece.old)
    return ways


def _latest(chain: list[_Piece]) -> list[int] | None:
    """The last start of each piece that leaves room for those behind it; None if they do not fit
    in this order."""
    latest: list[int] = []
    limit = float("inf")
    for piece in reversed(chain):
        k = bisect_right(piece.starts, limit - len(piece.old))
        if k == 0:
            return None
        limit = piece.starts[k - 1]
        latest.append(piece.starts[k - 1])
    return latest[::-1]
