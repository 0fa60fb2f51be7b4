"""The rung `elided`: a `...` line in both halves stands for lines that both leave out.

The quote is then a chain of pieces, in order.  It is certain when every piece that changes has
only one place over all chains that the text allows: the leftmost chain and the rightmost one bound
them all, so these two decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patchq.resolve.readings import Level, Lines, Quote
from patchq.resolve.search import Place, edges, find
from patchq.text import Text

_DOTS = (b"...", "…".encode())


@dataclass(frozen=True, slots=True)
class Chain:
    """A place for each piece, front to back; not `certain` when another chain writes elsewhere."""

    places: tuple[Place, ...]
    certain: bool = True


def elides(quote: Quote) -> bool:
    """Whether both halves leave lines out, equally often and between quoted lines only."""
    old, new = _pieces(quote.old), _pieces(quote.new)
    return 1 < len(old) == len(new) and all(old) and all(new) and any(map(_indented, old))


def inverse(quote: Quote) -> Quote:
    """The quote of what the edit would have written."""
    return Quote(quote.new, quote.old, quote.rung)


def chain(text: Text, quote: Quote, level: Level) -> Chain | None:
    """Where the pieces of a quote that `elides` stand; None when nowhere in that order."""
    for old, new in edges(quote) if level.edges else [(quote.old, quote.new)]:
        found = list(_chains(text, _pieces(old), _pieces(new), level))
        if found:
            return found[0] if len(found) == 1 else Chain(found[0].places, certain=False)
    return None


def _pieces(lines: Lines) -> list[Lines]:
    pieces: list[Lines] = [[]]
    for line in lines:
        if line.strip() in _DOTS:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _indented(piece: Lines) -> bool:
    """Whether the piece has a line that can show a shift; blank ones fit any."""
    return any(line.strip() for line in piece)


def _chains(text: Text, old: list[Lines], new: list[Lines], level: Level) -> Iterator[Chain]:
    """The chain for each uniform shift of the indentation under which there is one."""
    found = [
        [Place(start, start + len(o), o, n, shift) for start, shift in find(text, o, level)]
        for o, n in zip(old, new, strict=True)
    ]
    shown = next(i for i, piece in enumerate(old) if _indented(piece))
    for shift in dict.fromkeys(place.shift for place in found[shown]):
        fitting = [
            [place for place in places if place.shift == shift or not _indented(place.old)]
            for places in found
        ]
        chain = _bounded(fitting, old, new)
        if chain:
            yield chain


def _bounded(found: list[list[Place]], old: list[Lines], new: list[Lines]) -> Chain | None:
    leftmost: list[Place] = []
    end = 0
    for places in found:
        place = next((p for p in places if p.start >= end), None)
        if place is None:
            return None
        leftmost.append(place)
        end = place.end
    rightmost: list[Place] = []
    limit: int | None = None
    for places in reversed(found):
        place = next(p for p in reversed(places) if limit is None or p.end <= limit)
        rightmost.insert(0, place)
        limit = place.start
    certain = all(
        o == n or a.start == b.start
        for o, n, a, b in zip(old, new, leftmost, rightmost, strict=True)
    )
    return Chain(tuple(leftmost), certain)
