"""Where a quote of whole lines stands in a text, at one level of the ladder.

The cost is linear in the text whatever it repeats: runs of lines are found by one substring
search, and a uniform shift of the indentation by searching for how the indentation *changes* from
line to line, which a shift leaves alone.

At the rung `elided` a `...` line in both halves stands for lines that both leave out.  The quote is
then a chain of pieces, in order, all of them shifted alike.  A piece that changes may have several
places; every combination of them is a chain of its own, so that the caller can judge by what they
write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, repeat
from typing import TypeVar, overload

from msgspec import Struct

from patchq.core.resolve.readings import Level, Lines, Quote, has_text, pieces
from patchq.core.text.lines import Normalise, Text

MOST_PLACES = 50
"""More places than these are not told apart; every report says at most so many."""
_MOST_EDGE_BLANKS = 4
_CHECKED_ONE_BY_ONE = 64
_INDENTATION = b" \t"


class Shift(Struct, frozen=True):
    """The indentation that the text has more (`added`) or less (`removed`) than the quote."""

    added: bytes = b""
    removed: bytes = b""


NO_SHIFT = Shift()


class Spot(Struct, frozen=True):
    """What was found: the bytes `start:end` of `Text.whole`, or such lines (0-based, half-open)."""

    start: int
    end: int


S = TypeVar("S", bound=Spot)


class Place(Spot, frozen=True):
    """Lines that are read as the quote's `old` and `new`."""

    old: Lines
    new: Lines
    shift: Shift = NO_SHIFT


Chain = tuple[Place, ...]
"""A place for each piece of a quote, front to back."""


class Places(Sequence[Place]):
    """The places of one quote, by their first lines (`starts`), each made when it is asked for:
    thousands of quotes may have many."""

    def __init__(self, starts: Sequence[int], old: Lines, new: Lines) -> None:
        self.starts = starts
        self._halves = old, new

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, key: int) -> Place: ...

    @overload
    def __getitem__(self, key: slice) -> list[Place]: ...

    def __getitem__(self, key: int | slice) -> Place | list[Place]:
        if isinstance(key, slice):
            return [self[k] for k in range(*key.indices(len(self)))]
        old, new = self._halves
        return Place(self.starts[key], self.starts[key] + len(old), old, new)


class _Chains(Sequence[Chain]):
    """The same as chains of a single piece."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, key: int) -> Chain: ...

    @overload
    def __getitem__(self, key: slice) -> list[Chain]: ...

    def __getitem__(self, key: int | slice) -> Chain | list[Chain]:
        if isinstance(key, slice):
            return [(place,) for place in self.places[key]]
        return (self.places[key],)


def first_pieces(chains: Sequence[Chain]) -> Sequence[Place]:
    """The places of the first piece, one for each line at which it begins."""
    if isinstance(chains, _Chains):
        return chains.places
    return tuple({chain[0].start: chain[0] for chain in chains}.values())


def first_lines(chains: Sequence[Chain]) -> Sequence[int]:
    """The lines at which the chains begin."""
    if isinstance(chains, _Chains):
        return chains.places.starts
    return [chain[0].start for chain in chains]


def ways(
    text: Text, quote: Quote, level: Level, most: int | None = MOST_PLACES + 1
) -> Sequence[Chain]:
    """Every way in which `quote.old` stands in the text, a quote without gaps as a single piece;
    one more than `MOST_PLACES` means: in more ways than these.  Chains differ in pieces that change
    only.  Blank lines at the edges are given up, in pairs, only if it stands nowhere with them."""
    for old, new in edges(quote) if level.edges else ((quote.old, quote.new),):
        if quote.rung == "elided":
            found = list(islice(_chains(text, old, new, level), most))
        else:
            size = len(old)
            if old and not level.shifts:
                wanted = level.normalise(old) if level.normalise else old
                starts = list(islice(text.view(level.normalise).find(wanted), most))
                if len(starts) > 1:
                    return _Chains(Places(starts, old, new))
                there = [(start, NO_SHIFT) for start in starts]
            else:
                there = list(islice(find(text, old, level), most))
            found = [(Place(start, start + size, old, new, shift),) for start, shift in there]
        if found:
            return found
    return []


def apart(found: Iterable[S]) -> list[S]:
    """Those that do not overlap one before them, from left to right."""
    kept: list[S] = []
    for spot in found:
        if not kept or spot.start >= kept[-1].end:
            kept.append(spot)
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
    """How many blank lines `old` can lose in front; `new`, unless empty, has to lose them too."""
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
    view = text.view(_as_read(_without_indentation, normalise))
    few = list(islice(view.find(_without_indentation(quote)), _CHECKED_ONE_BY_ONE))
    if len(few) == _CHECKED_ONE_BY_ONE:
        return _find_changes(text, quote, normalise)
    first = _leading_blanks(quote)
    lines = text.view(normalise).lines
    shifts = ((i, _shift_between(quote[first], lines[i + first])) for i in few)
    return (
        (i, shift)
        for i, shift in shifts
        if shift and all(shifted(line, shift) == lines[i + k] for k, line in enumerate(quote))
    )


def _find_changes(
    text: Text, quote: Lines, normalise: Normalise | None
) -> Iterator[tuple[int, Shift]]:
    """The same where many places are alike but for their indentation: its changes are compared,
    which needs no second look at each of them."""
    first = _leading_blanks(quote)
    lines = text.view(normalise).lines
    changes = _changes(quote)[first + 1 :]
    if changes:
        view = text.view(_as_read(_changes, normalise), by_line=False)
        sought, ahead = changes, first + 1
    else:
        view = text.view(_as_read(_without_indentation, normalise))
        sought, ahead = _without_indentation(quote), 0
    for i in view.find(sought):
        start = i - ahead
        if start < 0:
            continue
        shift = _shift_between(quote[first], lines[start + first])
        if (
            shift
            and shifted(quote[first], shift) == lines[start + first]
            and all(quote[k] == lines[start + k] for k in reversed(range(first)))
        ):
            yield start, shift


def _shift_between(quoted: bytes, line: bytes) -> Shift | None:
    """What turns the quoted line's indentation into the line's; None if no one string does."""
    ours, theirs = indentation(quoted), indentation(line)
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


def _changes(lines: Lines) -> Lines:
    """Each line as its text and what its indentation and the one before it do not share."""
    before = b""
    changes = []
    for line in lines:
        if not line.strip():
            changes.append(line)
            continue
        indent = indentation(line)
        shared = 0
        while before[shared : shared + 1] == indent[shared : shared + 1] != b"":
            shared += 1
        less, more = before[shared:], indent[shared:]
        changes.append(b"%d %d %s%s%s" % (len(less), len(more), less, more, line[len(indent) :]))
        before = indent
    return changes


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
                Place(start, start + len(piece.old), piece.old, piece.new, shift)
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
