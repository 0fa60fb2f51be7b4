"""Hunks of diffs and chunks of V4A patches: whole lines with hints about where they are.

The body decides.  A scope line, the file's end and a stated line number only tell equal places
apart; nearness never does.

The hunks of one file are in its order: each changes lines behind those that the one before changes.
The earliest chain of such places and the latest one enclose all others, so that two passes tell
which places of each hunk a chain goes through, however many chains there are.  A hunk with one
place is certain wherever that is, unless a looser reading of it, or its new text, is in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from msgspec import Struct

from patchq.core.model.ops import PatchHunk, Replace
from patchq.core.resolve import ladder
from patchq.core.resolve.ladder import Found, Missed, Standing, inserted
from patchq.core.resolve.levels import STRIPPED, lines_of
from patchq.core.resolve.places import LineRange, Placement, find_lines
from patchq.core.text.lines import BLANKS, Text

_MOST_PLACES = 200  # among more places than these the order of the hunks tells none apart


def resolve(
    text: Text, ops: Sequence[PatchHunk], levels: Sequence[str], *, lines_hold: bool = False
) -> list[Found | Missed]:
    """Return the places of one file's hunks, which have to be in order.

    `lines_hold`: their line numbers are trusted.
    """
    lines = stated(ops) if lines_hold else [frozenset[int]()] * len(ops)
    sought = [_Sought(text, op, levels, own) for op, own in zip(ops, lines, strict=True)]
    found = [one.alone for one in sought]
    if (
        len(ops) > 1
        and any(one.is_doubtful for one in sought)
        and (placements := _in_order(sought))
    ):
        found = [one.among(own) for one, own in zip(sought, placements, strict=True)]
    return list(_out_of_order_refused(sought, list(_behind_claims(sought, found))))


def stated(ops: Sequence[PatchHunk]) -> list[frozenset[int]]:
    """Return the 1-based lines at which each hunk may begin by its own number.

    The lines that the hunks before it add may be counted or not.
    """
    added = accumulate((op.new.count("\n") - op.old.count("\n") for op in ops), initial=0)
    return [
        frozenset() if op.line is None else frozenset({op.line, op.line - more})
        for op, more in zip(ops, added, strict=False)
    ]


class _Range(Struct, frozen=True):
    """A place of a hunk, from line `start`, that changes lines `first:last`."""

    start: int
    first: int
    last: int
    placement: Placement | None = None

    def follows(self, other: _Range) -> bool:
        return self.first >= other.last and (
            self.start > other.start or self.is_point or other.is_point
        )

    @property
    def is_point(self) -> bool:
        return self.placement is None and self.first == self.last


class _Sought:
    """One hunk and its places, regardless of the others."""

    def __init__(
        self, text: Text, op: PatchHunk, levels: Sequence[str], lines: frozenset[int]
    ) -> None:
        self.text = text
        self.op = op
        self._rungs = levels
        self._lines = lines
        self._behind = _behind_scopes(text, op.scopes)

    @cached_property
    def alone(self) -> Found | Missed:
        """Return the hunk's place, regardless of the other hunks."""
        if not self.op.old:
            return self._insertion()
        there = self._standing
        return (
            Missed("none") if there is None else ladder.judged(self.text, there, there.placements)
        )

    @property
    def is_doubtful(self) -> bool:
        """Return True if the hunk's place may depend on the other hunks."""
        there = self._standing
        return there is not None and len(there.placements) > 1

    def among(self, ranges: Sequence[_Range]) -> Found | Missed:
        """Return the hunk's place among those that are possible with all in order."""
        there, placements = (
            self._standing,
            [one.placement for one in ranges if one.placement is not None],
        )
        if there is None or not self.is_doubtful or not placements:
            return self.alone
        if self.op.old != self.op.new and self._says_otherwise(placements):
            return self.alone
        return ladder.judged(self.text, there, placements)

    @cached_property
    def ranges(self) -> Sequence[_Range]:
        """Return all places that the hunk may have; none if they are too many."""
        found, there = self.alone, self._standing
        if isinstance(found, Found) and (there is None or found.already):
            first = found.start if found.already else found.end
            return [_Range(first, first, found.end)]
        if there is None or len(there.placements) > _MOST_PLACES:
            return []
        return [self._range(placement) for placement in there.placements]

    @cached_property
    def _standing(self) -> Standing | None:
        op = self.op
        halves = [(op.old, op.new), *([op.bare] if op.bare else [])] if op.old else []
        for old, new in halves:
            quote, most = Replace(old, new), _MOST_PLACES + 1
            if found := ladder.standing(self.text, quote, self._rungs, self._narrow, most):
                return found
        return None

    def _narrow(self, placements: Sequence[Placement]) -> Sequence[Placement]:
        if self.op.at_end:
            placements = [
                placement for placement in placements if placement[-1].end == len(self.text.lines)
            ]
        if self._behind is not None:  # or with the scope line among its own
            placements = [
                placement for placement in placements if placement[-1].end >= self._behind
            ]
            placements = [w for w in placements if w[0].start >= self._behind] or placements
        if self._lines and len(placements) > 1:
            there = [placement for placement in placements if placement[0].start + 1 in self._lines]
            placements = there if len(there) == 1 else placements
        return placements

    @cached_property
    def present(self) -> Found | None:
        """Return the place of the new text, for a hunk that is already applied."""
        op = Replace(self.op.old, self.op.new)
        return ladder.present(self.text, op, self._rungs) if op.old else None

    def may_be_within(self, low: int, high: int) -> bool:
        """Return True if the old or new text is found in lines `low:high`."""

        def inside(placements: Sequence[Placement]) -> Sequence[Placement]:
            return [
                placement
                for placement in placements
                if placement[0].start >= low and placement[-1].end <= high
            ]

        halves = (Replace(self.op.old, self.op.new), Replace(self.op.new, self.op.old))
        return any(
            ladder.standing(self.text, half, self._rungs, inside, None) is not None
            for half in halves
            if half.old.strip()
        )

    def _insertion(self) -> Found | Missed:
        """Return the place of a hunk that quotes no lines.

        That is behind their scope, at the file's end, or in an empty file.
        """
        op, behind = self.op, self._behind
        if not op.scopes and (op.at_end or not self.text.lines):
            behind = len(self.text.lines)
        if behind is None:
            return Missed("none", detail="it adds lines and quotes none")
        return inserted(self.text, behind, lines_of(op.new))

    def _says_otherwise(self, placements: Sequence[Placement]) -> bool:
        """Return True if the hunk's line number names another of its places."""
        number = None if self.op.line is None else self.op.line - 1
        return all(placement[0].start != number for placement in placements) and any(
            one.start == number for one in self.ranges
        )

    def _range(self, placement: Placement) -> _Range:
        start, end = placement[0].start, placement[-1].end
        if self.op.old == self.op.new:
            return _Range(start, start, end, placement)
        lead = _shared(placement[0])
        tail = _shared(placement[-1], back=lead if len(placement) == 1 else 0)
        return _Range(start, start + lead, max(end - tail, start + lead), placement)


def _behind_scopes(text: Text, scopes: Sequence[str]) -> int | None:
    at: int | None = None
    for scope in scopes:
        sought = scope.encode("utf-8", "surrogateescape").strip(BLANKS)
        if not sought:
            continue
        there = [i for i, _ in find_lines(text, [sought], STRIPPED) if i >= (at or 0)]
        if len(there) != 1:
            return None
        at = there[0] + 1
    return at


def _shared(place: LineRange, *, back: int | None = None) -> int:
    """Return the number of leading lines that both halves share.

    With `back`, of trailing lines, without the first `back` lines.
    """
    old, new = place.old, place.new
    if back is not None:
        old, new = old[back:][::-1], new[back:][::-1]
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(old), len(new)))


# ---------------------------------------------------------------- all hunks of a file


def _in_order(sought: Sequence[_Sought]) -> list[list[_Range]] | None:
    """Return for each hunk the places that are possible with all hunks in order.

    None if there is no such order, or their own numbers contradict it.
    """
    numbers = [one.op.line for one in sought if one.op.line is not None]
    if any(one > other for one, other in pairwise(numbers)):
        return None
    before = _Range(-1, 0, 0)
    able: list[list[_Range]] = []
    for one in sought:
        able.append([own for own in one.ranges if own.follows(before)])
        if not able[-1] and one.ranges:
            return None
        before = min(able[-1], key=lambda own: (own.last, own.start), default=before)
    end = len(sought[0].text.lines) + 1
    behind = _Range(end, end, end)
    for k in reversed(range(len(able))):
        able[k] = [own for own in able[k] if behind.follows(own)]
        behind = max(able[k], key=lambda own: (own.first, own.start), default=behind)
    return able


def _behind_claims(
    sought: Sequence[_Sought], found: Sequence[Found | Missed]
) -> Iterator[Found | Missed]:
    """Yield the results; one before the lines quoted by the hunk above is refused."""
    quoted = -1
    for one, here in zip(sought, found, strict=True):
        if one.op.old == one.op.new:
            quoted = min((own.start for own in one.ranges), default=quoted)
        elif isinstance(here, Found):
            is_before, quoted = here.end <= quoted and here.hunks, -1
            if is_before:
                place = LineRange(here.start, here.end, [], [])
                why = "it is before the lines that the chunk above it quotes"
                here = Missed("unwritable", here.level, (place,), why)
        yield here


def _out_of_order_refused(
    sought: Sequence[_Sought], found: Sequence[Found | Missed]
) -> Iterator[Found | Missed]:
    """Yield the results; one before the hunk above is refused if it is doubtful.

    It is doubtful if either hunk may be in order elsewhere.
    """
    latest: tuple[_Sought, Found] | None = None
    for one, here in zip(sought, found, strict=True):
        there = one.present if isinstance(here, Missed) and here.why == "none" else here
        if isinstance(there, Found) and one.op.old != one.op.new:
            if latest is None or there.start > latest[1].start:
                latest = one, there
            elif there.end <= latest[1].start and (
                one.may_be_within(latest[1].end, len(one.text.lines))
                or latest[0].may_be_within(0, there.start)
            ):
                place = LineRange(there.start, there.end, [], [])
                here = Missed("ambiguous", there.level, (place,))
        yield here
