"""The text of one file under its edits: disjoint replacements of base bytes.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on the text as earlier edits leave it is folded: it replaces the
replacements that it touches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from operator import attrgetter

from msgspec import Struct

from patchq.core.model.values import Edit, Hunk
from patchq.core.resolve.ladder import Found, replaced
from patchq.core.text.lines import Text

_START, _END, _SPAN = attrgetter("start"), attrgetter("end"), attrgetter("start", "end")
_EDITS = attrgetter("edits")


class ChangedRange(Struct, frozen=True):
    """Changes of one edit within a run of lines that it quotes.

    The range reaches from the first change to the last.  Edits of equal `meaning` mean one.  One
    that is `folded` took the place of others; its hunk has the span alone.
    """

    edit: str
    format: str
    hunks: tuple[Hunk, ...]
    meaning: object = None
    folded: bool = False

    @property
    def start(self) -> int:
        return self.hunks[0].start

    @property
    def end(self) -> int:
        return self.hunks[-1].end

    def means(self, other: ChangedRange) -> bool:
        """Return True if both ranges mean the same change of one place."""
        equal = self.meaning is not None and self.meaning == other.meaning
        return equal and self.hunks == other.hunks

    def within(self, start: int, end: int) -> set[Hunk] | None:
        """Return the hunks inside `start:end`; None if one crosses a border, or is not known."""
        inside = set()
        for hunk in self.hunks:
            if (hunk.end <= start and hunk.start < start) or (hunk.start >= end and hunk.end > end):
                continue
            if hunk.start < start or hunk.end > end or self.folded:
                return None
            inside.add(hunk)
        return inside


def changed_ranges(edit: Edit, found: Found, meaning: object) -> list[ChangedRange]:
    """Return the ranges that the edit changes where it was found."""
    return [ChangedRange(edit.id, edit.format, run, meaning) for run in found.runs if run]


class Patch(Hunk, frozen=True):
    """Replacement of bytes of the base, and the edits behind it."""

    edits: tuple[str, ...]

    @property
    def growth(self) -> int:
        """Return the number of bytes that the patch adds, negative if it removes more."""
        return len(self.new) - (self.end - self.start)

    def changes_line(self, text: Text, start: int, end: int) -> bool:
        """Return True if the patch changes, deletes or splits a line of `start:end`.

        `start` and `end` are offsets in the base.
        """
        if self.start < self.end:
            return self.start < end and start < self.end
        if not start <= self.start <= end or not self.new:
            return False
        if _begins_line(text, self.start):
            return not self.new.endswith(b"\n") and self.start < end
        ends_line = text.whole[self.start : self.start + 2].startswith((b"\n", b"\r\n"))
        return not (ends_line and self.new.startswith((b"\n", b"\r\n")))


class EditedText:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, text: Text) -> None:
        self.text = text  # the base
        self._now: Text | None = None
        self._ranges: list[ChangedRange] = []  # in the order of their starts
        # The most bytes of one of them, and the last offset that one reaches.
        self._longest, self._reach = 0, -1
        self.patches: list[Patch] = []  # the replacements, in the base's bytes and in order
        self._latest: dict[str, None] = {}  # the edits that no later one needs

    def now(self) -> Text:
        """Return the text as the edits so far leave it."""
        if not self.patches:
            return self.text
        self._now = self._now or Text(self.data())
        return self._now

    def data(self) -> bytes:
        """Return the bytes as the edits so far leave them, the last line ended."""
        return replaced(self.text.whole, self.patches, 0, len(self.text.whole))

    # ------------------------------------------------------------ edits of the base

    def add(self, ranges: Sequence[ChangedRange]) -> ChangedRange | None:
        """Make an edit's replacements, which are in the base's bytes.

        Returns the earlier claim with which one of them collides, and then changes nothing.
        What an earlier edit has replaced alike counts once; insertions at one point keep their
        order.
        """
        additions = self._additions(ranges)
        if isinstance(additions, ChangedRange):
            return additions
        for claim, hunks in additions:
            self._occupy(claim)
            for hunk in hunks:
                patch = Patch(hunk.start, hunk.end, hunk.new, (claim.edit,))
                insort_right(self.patches, patch, key=_SPAN)
                self._latest[claim.edit] = None
        self._now = None
        return None

    def collides(self, ranges: Sequence[ChangedRange]) -> bool:
        """Return True if an earlier range keeps these from being added."""
        return isinstance(self._additions(ranges), ChangedRange)

    def _additions(
        self, ranges: Sequence[ChangedRange]
    ) -> list[tuple[ChangedRange, tuple[Hunk, ...]]] | ChangedRange:
        """Return the ranges to add with their new hunks, or the range in conflict."""
        additions: list[tuple[ChangedRange, tuple[Hunk, ...]]] = []
        for claim in ranges:
            hunks = claim.hunks
            if near := self._near(claim):
                for other in near:
                    start, end = max(claim.start, other.start), min(claim.end, other.end)
                    if other.start < claim.end and claim.start < other.end:
                        alike = other.within(start, end)
                        if alike is None or alike != claim.within(start, end):
                            return other
                        hunks = tuple(hunk for hunk in hunks if hunk not in alike)
                if hunks and any(claim.means(other) for other in near):
                    if undone := next((one for one in near if one.folded), None):
                        return undone
                    continue
                rivals = (self._rival(near, claim, hunk) for hunk in hunks)
                if rival := next(filter(None, rivals), None):
                    return rival
            additions.append((claim, hunks))
        return additions

    def _near(self, claim: ChangedRange) -> Sequence[ChangedRange]:
        if claim.start > self._reach:  # edits mostly come in order
            return ()
        first = bisect_left(self._ranges, claim.start - self._longest, key=_START)
        last = bisect_right(self._ranges, claim.end, first, key=_START)
        return [other for other in self._ranges[first:last] if other.end >= claim.start]

    def _rival(
        self, near: Sequence[ChangedRange], claim: ChangedRange, hunk: Hunk
    ) -> ChangedRange | None:
        """Return an earlier insertion at the same point that makes the order uncertain.

        Equal ones may be meant as one or as two; those of two formats have no certain order.
        """
        point = hunk.start, hunk.start
        if hunk.start < hunk.end:
            return None
        there = [one for one in near if any((it.start, it.end) == point for it in one.hunks)]
        if not there:
            return None
        first = bisect_left(self.patches, point, key=_SPAN)
        last = bisect_right(self.patches, point, first, key=_SPAN)
        equal = any(patch.new == hunk.new for patch in self.patches[first:last])
        rivals = (one for one in there if one.format != claim.format or hunk in one.hunks)
        return next(rivals, there[0] if equal else None)

    def _occupy(self, claim: ChangedRange) -> None:
        insort_right(self._ranges, claim, key=_START)
        self._longest = max(self._longest, claim.end - claim.start)
        self._reach = max(self._reach, claim.end)

    def _cover(self, claim: ChangedRange) -> None:
        """Replace the ranges within a folded one by that."""
        first = bisect_left(self._ranges, claim.start, key=_START)
        last = bisect_right(self._ranges, claim.end, first, key=_START)
        at_a_point = claim.start == claim.end
        self._ranges[first:last] = [
            other
            for other in self._ranges[first:last]
            if other.end > claim.end
            or (other.start == other.end and not (other.folded and at_a_point))
        ]
        self._occupy(claim)

    # ------------------------------------------------------------ what earlier edits did

    def changed(self, start: int, end: int) -> Patch | None:
        """Return the first patch that changes, deletes or splits a line of `start:end`."""
        near = self._between(start, end)
        return next((one for one in near if one.changes_line(self.text, start, end)), None)

    def disturbs(self, start: int, end: int) -> bool:
        """Return True if a patch changes or separates the base lines `start:end`."""
        return any(
            start < one.start == one.end < end or one.changes_line(self.text, start, end)
            for one in self._between(start, end)
        )

    def last_writer(self, start: int, end: int) -> str | None:
        """Return the last edit that wrote or deleted bytes in `start:end` of `now`."""
        first, last = self._inside(Hunk(start, end, b""))
        return self.patches[last - 1].edits[-1] if first < last else None

    def _between(self, start: int, end: int) -> Sequence[Patch]:
        if not self.patches or self.patches[-1].end < start:
            return ()
        first = bisect_left(self.patches, start, key=_END)
        return self.patches[first : bisect_right(self.patches, end, first, key=_START)]

    # ------------------------------------------------------------ edits of the text as it is

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Replace bytes of `now`, for an edit that quotes the bytes `quoted` there.

        Returns the edits that it depends on, without those that one of these depends on.
        """
        first, last = self._inside(quoted)
        if first == last:
            first, last = self._touched(quoted)
        needs: tuple[str, ...] = tuple(self._latest)
        if 0 < last - first < len(self.patches):
            needs = _edits_of(self.patches[first:last])
        data = self.now().whole
        for hunk in reversed(hunks):
            data = self._fold_one(edit, format, hunk, needs, data)
        self._now = None
        for name in needs:
            self._latest.pop(name, None)
        self._latest[edit] = None
        return needs

    def _fold_one(
        self, edit: str, format: str, hunk: Hunk, needs: Sequence[str], data: bytes
    ) -> bytes:
        """Make one patch of the hunk and of all patches that it touches.

        Returns `data`, the bytes as they are, with the hunk applied.
        """
        spots = self._spots()
        first, last = self._touched(hunk)
        left, right = hunk.start, hunk.end
        if first < last:
            left, right = min(left, spots[first].start), max(right, spots[last - 1].end)
        start, end = left - self._grown(first), right - self._grown(last)
        new = data[left : hunk.start] + hunk.new + data[hunk.end : right]
        names = (name for name in _edits_of(self.patches[first:last]) if name not in needs)
        edits = tuple(dict.fromkeys([*names, edit]))
        self.patches[first:last] = [Patch(start, end, new, edits)]
        self._cover(ChangedRange(edit, format, (Hunk(start, end, b""),), folded=True))
        return data[: hunk.start] + hunk.new + data[hunk.end :]

    def _inside(self, quoted: Hunk) -> tuple[int, int]:
        spots = self._spots()
        first, last = self._touched(quoted)
        while first < last and _borders_on(quoted, spots[first]):
            first += 1
        while first < last and _borders_on(quoted, spots[last - 1]):
            last -= 1
        return first, last

    def _touched(self, hunk: Hunk) -> tuple[int, int]:
        """Return the first and end index of the patches that overlap or border `hunk`.

        `hunk` is in bytes of `now`.
        """
        spots = self._spots()
        first = bisect_left(spots, hunk.start, key=_END)
        return first, bisect_right(spots, hunk.end, first, key=_START)

    def _spots(self) -> list[Hunk]:
        """Return the place in `now` of each patch, with what it has written there."""
        grown = accumulate((patch.growth for patch in self.patches), initial=0)
        starts = [patch.start + more for patch, more in zip(self.patches, grown, strict=False)]
        return [
            Hunk(at, at + len(patch.new), patch.new)
            for at, patch in zip(starts, self.patches, strict=True)
        ]

    def _grown(self, at: int) -> int:
        return sum(patch.growth for patch in self.patches[:at])


def _borders_on(quoted: Hunk, spot: Hunk) -> bool:
    return (spot.start >= quoted.end or quoted.start >= spot.end) and bool(spot.new)


def _edits_of(patches: Iterable[Patch]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(map(_EDITS, patches))))


def _begins_line(text: Text, at: int) -> bool:
    return at in (0, text.offset) or text.whole[at - 1 : at] == b"\n"
