"""Hunks of diffs and chunks of V4A patches: whole lines with hints about where they stand.

The body decides.  A scope line, the file's end and a stated line number only tell equal places
apart; nearness never does.

The hunks of one file stand in its order.  What one of them may mean is narrowed by the others: each
changes lines behind those that the one before changes, and stands behind one that only quotes.  The
earliest chain of such places and the latest one enclose all others, so that two passes tell which
places of each hunk a chain goes through, however many chains there are.  A hunk that stands in one
place only is certain wherever that is, unless a looser reading of it would stand in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import overload

from msgspec import Struct

from patchq.core.model.ops import PatchHunk, Replace
from patchq.core.resolve import ladder
from patchq.core.resolve.ladder import Found, Missed, Standing, inserted
from patchq.core.resolve.readings import Quote, lines_of, stripped
from patchq.core.resolve.search import MOST_PLACES, Chain, Place, first_lines
from patchq.core.text.lines import BLANKS, Text

_START = attrgetter("start")


def resolve(
    text: Text,
    ops: Sequence[PatchHunk],
    rungs: Sequence[str],
    *,
    lines_hold: bool = False,
) -> list[Found | Missed]:
    """Where the hunks of one file, in their order, belong in `text`; `lines_hold` says that their
    numbers may be believed."""
    lines = stated(ops) if lines_hold else [frozenset[int]()] * len(ops)
    shared: Shared = {}
    sought = [_Sought(text, op, rungs, own, shared) for op, own in zip(ops, lines, strict=True)]
    if len(ops) == 1:
        return [sought[0].alone]
    through = _through(sought) if any(one.is_doubtful for one in sought) else None
    found = [
        one.alone if through is None else one.among(ways)
        for one, ways in zip(sought, through or [[] for _ in sought], strict=True)
    ]
    return _checked(sought, found)


def stated(ops: Sequence[PatchHunk]) -> list[frozenset[int]]:
    """The lines (1-based) at which each hunk says that it begins; whether the lines that the hunks
    before it add are counted or not."""
    added = accumulate((op.new.count("\n") - op.old.count("\n") for op in ops), initial=0)
    return [
        frozenset() if op.line is None else frozenset({op.line, op.line - more})
        for op, more in zip(ops, added, strict=False)
    ]


class _Stretch(Struct, frozen=True):
    """One way in which a hunk may stand: it begins on line `start`, and changes `first:last`."""

    start: int
    first: int
    last: int
    way: Chain | None = None

    def is_behind(self, other: _Stretch) -> bool:
        """Whether it may follow; hunks may quote the same lines, and add lines at one point."""
        return self.first >= other.last and (
            self.start > other.start or self.is_point or other.is_point
        )

    @property
    def is_point(self) -> bool:
        """Whether it quotes nothing."""
        return self.way is None and self.first == self.last


class _Many(Sequence[_Stretch]):
    """Places of one kind, from the file's start to its end: those that other hunks with the same
    quote have as well."""

    def __init__(
        self, ways: Sequence[Chain], starts: Sequence[int], quote: Quote, context: tuple[int, int]
    ) -> None:
        self._ways = ways
        self._starts = starts
        self._quote = quote
        self._lead = context[0]
        size = ways[0][0].end - ways[0][0].start if ways else 0
        self._reach = max(size - context[1], context[0])
        """How far behind its start a place ends to change lines."""

    def __len__(self) -> int:
        return len(self._ways)

    @overload
    def __getitem__(self, key: int) -> _Stretch: ...

    @overload
    def __getitem__(self, key: slice) -> list[_Stretch]: ...

    def __getitem__(self, key: int | slice) -> _Stretch | list[_Stretch]:
        if isinstance(key, slice):
            return [self[k] for k in range(*key.indices(len(self)))]
        place, start = self._ways[key][0], self._starts[key]
        way = (Place(start, place.end, self._quote.old, self._quote.new, place.shift),)
        return _Stretch(start, start + self._lead, start + self._reach, way)

    def behind(self, other: _Stretch) -> int:
        """How many of the places may not follow `other`: none of those after them."""
        low = other.last - self._lead
        return bisect_left(self._starts, low if other.is_point else max(low, other.start + 1))

    def before(self, other: _Stretch) -> int:
        """How many of the places `other` may follow: the first ones."""
        high = other.first - self._reach
        return bisect_right(self._starts, high if other.is_point else min(high, other.start - 1))


Shared = dict[tuple[object, ...], tuple[Sequence[Chain], Sequence[int]]]
"""The ways in which quotes stand that stand in many, and where they begin, by what tells the quotes
apart."""


class _Sought:
    """One hunk, and what is found of it whatever the others say."""

    def __init__(
        self,
        text: Text,
        op: PatchHunk,
        rungs: Sequence[str],
        lines: frozenset[int],
        shared: Shared,
    ) -> None:
        self.text = text
        self._shared = shared
        self.op = op
        self._rungs = rungs
        self._lines = lines
        self._behind = _behind_scopes(text, op.scopes)

    @cached_property
    def alone(self) -> Found | Missed:
        """Its one place by itself."""
        if not self.op.old:
            return self._insertion()
        there = self._standing
        if there is None:
            return Missed("none")
        return ladder.judged(self.text, there, there.ways)

    @property
    def is_doubtful(self) -> bool:
        """Whether its place may depend on the others'."""
        found = self.alone
        if isinstance(found, Missed):
            return found.why == "ambiguous"
        return bool(self.op.old and not found.already) and self._has_several

    @property
    def _has_several(self) -> bool:
        there = self._standing
        return there is not None and len(there.ways) > 1

    def among(self, stretches: Sequence[_Stretch]) -> Found | Missed:
        """Its one place among those that a chain goes through."""
        ways = [stretch.way for stretch in stretches if stretch.way is not None]
        there = self._standing
        if there is None or not ways or (isinstance(self.alone, Found) and len(there.ways) == 1):
            return self.alone
        if self.op.old != self.op.new and self._says_otherwise(ways):
            return self.alone
        return ladder.judged(self.text, there, ways)

    @cached_property
    def stretches(self) -> Sequence[_Stretch]:
        """All places that it may have; none if it has none, or more than can be told apart."""
        found, there = self.alone, self._standing if self.op.old else None
        if isinstance(found, Found) and (there is None or found.already or len(there.ways) == 1):
            way = there.ways[0] if there and not found.already else None
            return [self._stretch(way) if way else self._whole(found)]
        if there is None:
            return [self._whole(self.present)] if self.present else []
        if len(there.ways) <= MOST_PLACES:
            return [self._stretch(way) for way in there.ways]
        quote, level = there.step
        if quote.rung is not None or level.edges or self._lines:
            return []
        key = self.op.old, self.op.scopes, self.op.at_end, level
        if key not in self._shared:
            every = self._stand(None)
            ways = every.ways if every else []
            self._shared[key] = ways, first_lines(ways)
        claims = self.op.old == self.op.new
        return _Many(*self._shared[key], quote, (0, 0) if claims else self._context)

    @cached_property
    def present(self) -> Found | None:
        """Where it is there already, its old text being nowhere."""
        old, new = self.op.old, self.op.new
        return ladder.present(self.text, Replace(old, new), self._rungs) if old else None

    def between(self, low: int, high: int, *, written: bool = False) -> Sequence[Chain]:
        """Where any reading finds what it quotes behind line `low` and before line `high`; or what
        it would have written."""

        def inside(ways: Sequence[Chain]) -> Sequence[Chain]:
            return [way for way in ways if way[0].start >= low and way[-1].end <= high]

        quote = Replace(self.op.old, self.op.new)
        if written:
            quote = Replace(self.op.new, self.op.old)
        if ladder.stands_nowhere(self.text, quote, self._rungs, low, high):
            return []
        there = ladder.standing(self.text, quote, self._rungs, inside, most=None)
        return there.ways if there else []

    # ------------------------------------------------------------ by itself

    @cached_property
    def _standing(self) -> Standing | None:
        return self._stand(MOST_PLACES + 1)

    def _stand(self, most: int | None) -> Standing | None:
        op = self.op
        halves = [(op.old, op.new), *([op.bare] if op.bare else [])]
        for old, new in halves:
            quote = Replace(old, new)
            if found := ladder.standing(self.text, quote, self._rungs, self._narrow, most):
                return found
        return None

    def _narrow(self, ways: Sequence[Chain]) -> Sequence[Chain]:
        if self.op.at_end:
            ways = [way for way in ways if way[-1].end == len(self.text.lines)]
        if self._behind is not None:  # or with the scope line among its own
            ways = [way for way in ways if way[-1].end >= self._behind]
            ways = [w for w in ways if w[0].start >= self._behind] or ways
        if self._lines and len(ways) > 1:
            there = [way for way in ways if way[0].start + 1 in self._lines]
            ways = there if len(there) == 1 else ways
        return ways

    def _insertion(self) -> Found | Missed:
        """Lines without a neighbour: behind their scope, at the file's end, or in an empty one."""
        op, behind = self.op, self._behind
        if not op.scopes and (op.at_end or not self.text.lines):
            behind = len(self.text.lines)
        if behind is None:
            return Missed("none", detail="it adds lines and quotes none")
        return inserted(self.text, behind, lines_of(op.new))

    # ------------------------------------------------------------ among the others

    def _says_otherwise(self, ways: Sequence[Chain]) -> bool:
        """Whether its number names another place than those ways begin at."""
        line, there = self.op.line, self._standing
        if line is None or there is None or any(way[0].start + 1 == line for way in ways):
            return False
        at = bisect_left(self.stretches, line - 1, key=_START)
        return at < len(self.stretches) and self.stretches[at].start == line - 1

    def _whole(self, found: Found) -> _Stretch:
        if not self.op.old and not found.already:
            return _Stretch(found.end, found.end, found.end)
        return _Stretch(found.start, found.start, found.end)

    def _stretch(self, way: Chain) -> _Stretch:
        start, end = way[0].start, way[-1].end
        if self.op.old == self.op.new:
            return _Stretch(start, start, end, way)
        lead, tail = self._context
        return _Stretch(start, start + lead, max(end - tail, start + lead), way)

    @cached_property
    def _context(self) -> tuple[int, int]:
        """How many lines stand before what it changes, and how many behind."""
        assert self._standing is not None
        way = self._standing.ways[0]
        return _shared(way[0]), _shared(way[-1], back=_shared(way[0]) if len(way) == 1 else 0)


def _behind_scopes(text: Text, scopes: Sequence[str]) -> int | None:
    """The line behind the last scope line; None without scopes, or if one is not unique."""
    at: int | None = None
    for scope in scopes:
        sought = scope.encode("utf-8", "surrogateescape").strip(BLANKS)
        if not sought:
            continue
        there = [i for i in text.view(stripped).where(sought) if i >= (at or 0)]
        if len(there) != 1:
            return None
        at = there[0] + 1
    return at


def _shared(place: Place, *, back: int | None = None) -> int:
    """How many lines the halves share in front; with `back` at the end, so many less."""
    old, new = place.old, place.new
    if back is not None:
        old, new = old[back:][::-1], new[back:][::-1]
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(old), len(new)))


# ---------------------------------------------------------------- all hunks of a file


def _through(sought: Sequence[_Sought]) -> list[list[_Stretch]] | None:
    """Of each hunk the places that a chain of all hunks goes through; None if there is no chain, or
    their own numbers stand in another order."""
    numbers = [one.op.line for one in sought if one.op.line is not None]
    if any(one > other for one, other in pairwise(numbers)):
        return None
    earliest = [_Stretch(-1, 0, 0)]
    for one in sought:
        able = _between(one.stretches, earliest[-1], None)
        if not able:
            return None
        earliest.append(min(able, key=lambda stretch: (stretch.last, stretch.start)))
    through = []
    end = len(sought[0].text.lines) + 1
    latest = _Stretch(end, end, end)
    for one, before in zip(reversed(sought), reversed(earliest[:-1]), strict=True):
        able = _between(one.stretches, before, latest)
        latest = max(able, key=lambda stretch: (stretch.first, stretch.start))
        through.append(able)
    return through[::-1]


def _between(own: Sequence[_Stretch], before: _Stretch, behind: _Stretch | None) -> list[_Stretch]:
    """The places behind one and before another; of many only enough, and the last of them."""
    if not isinstance(own, _Many):
        return [s for s in own if s.is_behind(before) and (not behind or behind.is_behind(s))]
    first = own.behind(before)
    if behind is None:
        return own[first : first + 1]
    end = own.before(behind)
    assert first < end
    return [*own[first : min(end - 1, first + MOST_PLACES)], *own[max(end - 1, first) : end]]


def _checked(sought: Sequence[_Sought], found: list[Found | Missed]) -> list[Found | Missed]:
    """What was found, but for hunks that stand before lines that they have to stand behind, and
    those out of order that would stand in order if they were there already, or read loosely."""
    quoted, latest = 0, None
    for k, one in enumerate(sought):
        missed = found[k]
        here = one.present if isinstance(missed, Missed) and missed.why == "none" else missed
        if here is None or isinstance(here, Missed):
            continue
        if one.op.old == one.op.new:
            quoted = min((stretch.start for stretch in one.stretches), default=quoted)
            continue
        if here.end <= quoted and here.hunks:
            found[k] = Missed(
                "unwritable",
                here.rung,
                (Place(here.start, here.end, [], []),),
                "it stands before the lines that the chunk above it quotes",
            )
        elif latest is not None and here.end <= latest[1].start:
            judged = _out_of_order((one, here), latest)
            found[k] = found[k] if judged is here else judged
        quoted = 0
        if latest is None or here.start > latest[1].start:
            latest = one, here
    return found


def _out_of_order(one: tuple[_Sought, Found], latest: tuple[_Sought, Found]) -> Found | Missed:
    """What becomes of a hunk that was found before one that it follows."""
    (hunk, here), (other, behind) = one, latest
    end = len(hunk.text.lines)
    there = [] if here.already else hunk.between(behind.end, end, written=True)
    if (
        hunk.between(behind.end, end)
        or other.between(0, here.start)
        or (there and not behind.already)
        or (not behind.already and other.between(0, here.start, written=True))
        or len(there) > 1
    ):
        return Missed("ambiguous", here.rung, (Place(here.start, here.end, [], []),))
    if there:
        return Found(here.rung, there[0][0].start, there[0][-1].end, already=True)
    return here
