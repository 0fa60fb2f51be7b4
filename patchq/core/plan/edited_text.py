"""The text of one file under its edits: disjoint replacements of base bytes.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on the text as earlier edits leave it is folded: it replaces the
replacements that it touches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import Struct

from patchq.core.model.values import Edit, Hunk
from patchq.core.resolve.ladder import Found, replaced
from patchq.core.text.lines import EditedHaystack, Text

_START, _END, _SPAN = attrgetter("start"), attrgetter("end"), attrgetter("start", "end")
_EDITS = attrgetter("edits")
_MOST_SPLICED = 8  # to make the text anew costs no more than so many replacements
_MOST_PASSED = 200  # to search a text anew takes as long as to pass so many replacements


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
        ends_line = text.part(self.start, self.start + 2).startswith((b"\n", b"\r\n"))
        return not (ends_line and self.new.startswith((b"\n", b"\r\n")))


class EditedText:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, text: Text) -> None:
        self.text = text  # the base
        self._base = Text(text.whole)
        self._now: Text | None = None
        self._pending: list[Patch] = []  # the patches that are not in it yet
        self._ranges: list[ChangedRange] = []  # in the order of their starts
        self._starts: list[int] = []
        # The most bytes of one of them, and the last offset that one reaches.
        self._longest, self._reach = 0, -1
        self.patches: list[Patch] = []  # the replacements, in the base's bytes and in order
        self._begins: list[int] = []  # the offsets of the first patches in the text as it is
        self._latest: dict[str, None] = {}  # the edits that no later one needs

    def now(self) -> Text:
        """Return the text as the edits so far leave it."""
        pending, self._pending = sorted(self._pending, key=_SPAN), []
        if self._now is None or len(pending) > _MOST_SPLICED:
            self._now, pending = Text(self.data()) if self.patches else self.text, []
        for patch in pending:
            at = bisect_left(self.patches, (patch.start, patch.end), key=_SPAN)
            while self.patches[at] is not patch:
                at += 1
            begin = self._begin(at)
            self._now = self._now.spliced(begin, begin + patch.end - patch.start, patch.new)
        if 0 < len(self.patches) <= _MOST_PASSED and not self._now.lacks_final_newline:
            self._now.haystack = EditedHaystack(
                self._now.data, self.text.haystack, tuple(self.patches)
            )
        return self._now

    def data(self) -> bytes:
        """Return the bytes as the edits so far leave them, the last line ended."""
        return replaced(self._base.data, self.patches, 0, self._base.size)

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
                at = len(self.patches)
                if at and self.patches[-1].end >= hunk.start:
                    at = bisect_right(self.patches, (hunk.start, hunk.end), key=_SPAN)
                self._put(at, at, patch)
                self._pending.append(patch)
                self._latest[claim.edit] = None
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
        if claim.hunks[0].start > self._reach:  # edits mostly come in order
            return ()
        first = bisect_left(self._starts, claim.start - self._longest)
        last = bisect_right(self._starts, claim.end, first)
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
        start, end = claim.hunks[0].start, claim.hunks[-1].end
        at = len(self._starts) if start > self._reach else bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._ranges.insert(at, claim)
        self._longest = max(self._longest, end - start)
        self._reach = max(self._reach, end)

    def _cover(self, claim: ChangedRange) -> None:
        """Replace the ranges within a folded one by that."""
        first = bisect_left(self._starts, claim.start)
        last = bisect_right(self._starts, claim.end, first)
        at_a_point = claim.start == claim.end
        kept = [
            other
            for other in self._ranges[first:last]
            if other.end > claim.end
            or (other.start == other.end and not (other.folded and at_a_point))
        ]
        self._ranges[first:last] = kept
        self._starts[first:last] = map(_START, kept)
        self._occupy(claim)

    def _put(self, first: int, last: int, patch: Patch) -> None:
        self.patches[first:last] = [patch]
        del self._begins[first:]

    # ------------------------------------------------------------ what earlier edits did

    def changed(self, start: int, end: int) -> Patch | None:
        """Return the first patch that changes, deletes or splits a line of `start:end`."""
        near = self._between(start, end)
        return next((one for one in near if one.changes_line(self._base, start, end)), None)

    def disturbs(self, start: int, end: int) -> bool:
        """Return True if a patch changes or separates the base lines `start:end`."""
        return any(
            start < one.start == one.end < end or one.changes_line(self._base, start, end)
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
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk, needs)
        for name in needs:
            self._latest.pop(name, None)
        self._latest[edit] = None
        return needs

    def _fold_one(self, edit: str, format: str, hunk: Hunk, needs: Sequence[str]) -> None:
        """Make one patch of the hunk and of all patches that it touches."""
        now = self.now()
        first, last = self._touched(hunk)
        left, right = hunk.start, hunk.end
        if first < last:
            left, right = min(left, self._begin(first)), max(right, self._end(last - 1))
        start, end = left - self._grown_before(first), right - self._grown_before(last)
        new = now.part(left, hunk.start) + hunk.new + now.part(hunk.end, right)
        names = (name for name in _edits_of(self.patches[first:last]) if name not in needs)
        edits = tuple(dict.fromkeys([*names, edit]))
        self._put(first, last, Patch(start, end, new, edits))
        self._now = now.spliced(hunk.start, hunk.end, hunk.new)
        self._cover(ChangedRange(edit, format, (Hunk(start, end, b""),), folded=True))

    def _inside(self, quoted: Hunk) -> tuple[int, int]:
        first, last = self._touched(quoted)
        while first < last and self._borders_on(quoted, first):
            first += 1
        while first < last and self._borders_on(quoted, last - 1):
            last -= 1
        return first, last

    def _borders_on(self, quoted: Hunk, at: int) -> bool:
        outside = self._begin(at) >= quoted.end or quoted.start >= self._end(at)
        return outside and bool(self.patches[at].new)

    def _touched(self, hunk: Hunk) -> tuple[int, int]:
        """Return the first and end index of the patches that overlap or border `hunk`.

        `hunk` is in bytes of `now`.
        """
        while len(self._begins) < len(self.patches) and self._begins[-1:] <= [hunk.end]:
            self._begin(len(self._begins))
        first = bisect_left(self._begins, hunk.start)
        if first and self._end(first - 1) >= hunk.start:
            first -= 1
        return first, bisect_right(self._begins, hunk.end)

    def _begin(self, at: int) -> int:
        for known in range(len(self._begins), at + 1):
            self._begins.append(self.patches[known].start + self._grown_before(known))
        return self._begins[at]

    def _end(self, at: int) -> int:
        return self._begin(at) + len(self.patches[at].new)

    def _grown_before(self, at: int) -> int:
        if not at:
            return 0
        patch = self.patches[at - 1]
        return self._begin(at - 1) - patch.start + patch.growth


def _edits_of(patches: Iterable[Patch]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(map(_EDITS, patches))))


def _begins_line(text: Text, at: int) -> bool:
    return at in (0, text.offset) or text.part(at - 1, at) == b"\n"
