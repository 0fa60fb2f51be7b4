"""The rung `elided`: a `...` line in both halves stands for lines that both leave out.

The quote is then a chain of pieces, in order, all of them shifted alike.  A piece that changes may
have several places; every combination of them is a chain of its own, so that the caller can judge
by what they write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from patchq.resolve.readings import DOTS, Level, Lines, Quote
from patchq.resolve.search import MOST_PLACES, NO_SHIFT, Place, Shift, edges, find
from patchq.text.lines import Text

Chain = tuple[Place, ...]
"""A place for each piece, front to back."""

_MOST_PIECES = 50


def elides(quote: Quote) -> bool:
    """Whether both halves leave lines out, equally often and between quoted lines only."""
    old, new = pieces(quote.old), pieces(quote.new)
    if not 1 < len(old) == len(new) <= _MOST_PIECES or not all((*old, *new)):
        return False
    return any(map(_has_text, old)) and any(map(_has_text, new))


def inverse(quote: Quote) -> Quote:
    """The quote of what the edit would have written."""
    return Quote(quote.new, quote.old, quote.rung)


def chains(text: Text, quote: Quote, level: Level) -> list[Chain]:
    """Where the pieces of a quote that `elides` stand; chains differ in pieces that change only.
    One more than `MOST_PLACES` means: in more ways than these."""
    for old, new in edges(quote) if level.edges else [(quote.old, quote.new)]:
        found = list(islice(_chains(text, pieces(old), pieces(new), level), MOST_PLACES + 1))
        if found:
            return found
    return []


def pieces(lines: Lines) -> list[Lines]:
    """The runs of lines between the `...` lines."""
    runs: list[Lines] = [[]]
    for line in lines:
        if line.strip() in DOTS:
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def _has_text(piece: Lines) -> bool:
    """Whether the piece has a line that shows a shift; blank ones fit any."""
    return any(line.strip() for line in piece)


@dataclass(frozen=True, slots=True)
class _Piece:
    old: Lines
    new: Lines
    starts: list[int]
    """The lines at which it stands, in order."""


def _chains(text: Text, old: list[Lines], new: list[Lines], level: Level) -> Iterator[Chain]:
    if any(next(iter(find(text, piece, level)), None) is None for piece in old):
        return
    found = [_by_shift(text, piece, level) for piece in old]
    shown = next(i for i, piece in enumerate(old) if _has_text(piece))
    for shift in found[shown]:
        chain = [
            _Piece(o, n, starts.get(shift if _has_text(o) else NO_SHIFT, []))
            for o, n, starts in zip(old, new, found, strict=True)
        ]
        for starts in _ways(chain):
            yield tuple(
                Place(start, start + len(piece.old), piece.old, piece.new, shift)
                for start, piece in zip(starts, chain, strict=True)
            )


def _by_shift(text: Text, piece: Lines, level: Level) -> dict[Shift, list[int]]:
    starts: dict[Shift, list[int]] = {}
    for start, shift in find(text, piece, level):
        starts.setdefault(shift, []).append(start)
    return starts


def _ways(chain: list[_Piece]) -> list[tuple[int, ...]]:
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
    limit: int | None = None
    for piece in reversed(chain):
        k = len(piece.starts)
        if limit is not None:
            k = bisect_right(piece.starts, limit - len(piece.old))
        if k == 0:
            return None
        limit = piece.starts[k - 1]
        latest.append(limit)
    return latest[::-1]
