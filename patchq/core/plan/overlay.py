"""The edits of one file, kept apart: disjoint replacements of its base, whoever made them.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import add, attrgetter

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Hunk
from patchq.core.plan.patches import MOST_NAMED, Footprint, Joint, Patch, agreed, joined, names_of
from patchq.core.plan.written import WrittenLines, begins_line
from patchq.core.resolve.ladder import replaced
from patchq.core.text.draft import Draft
from patchq.core.text.lines import Text

_END = attrgetter("end")
_START = attrgetter("start")
_GROWTH = attrgetter("growth")
_FOOTPRINTS = attrgetter("footprints")

_RUN = 64


_Meaning = tuple[object, tuple[Hunk, ...]]


class _Island(Struct, frozen=True):
    """A stretch of the base that is under footprints, which agree wherever they overlap."""

    start: int
    end: int
    footprints: tuple[Footprint, ...]


class Overlay:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._based = Text(base)
        self._islands: list[_Island] = []
        """In order, without overlap; their ends are in order, too."""
        self._inserted: dict[int, dict[str, dict[bytes | int, Footprint]]] = {}
        """The footprints that insert at an offset, by their format and what they insert; those that
        stand for several, by `id`."""
        self._joined: dict[int, dict[int, Footprint]] = {}
        """These alone."""
        self._points: list[int] = []
        self._said: set[object] = set()
        """What footprints mean, or meant."""
        self._meanings: set[_Meaning] = set()
        self._meant: dict[str, list[_Meaning]] = {}
        """The same by the edits."""
        self._unmeant: list[Footprint] = []
        """Footprints whose meanings are not among them yet; most are never asked for."""
        self._patches: list[Patch] = []
        self._begins: list[int] = []
        """The offsets in `text()` at which the first patches begin."""
        self._lines = WrittenLines(self._based)
        self._now = self._based
        self._later: list[Patch] = []
        """The replacements that `_now` lacks."""
        self._is_folded = False
        self._makers: set[str] = set()
        self._since: list[str] = []
        """The last edit that needs all before it, and the edits since."""

    def now(self) -> Text:
        """The base with every replacement made."""
        if len(self._later) > 1 and not self._is_folded:
            self._now = Text(replaced(self.base, self.hunks(), 0, len(self.base)))
        elif self._later:
            grown, splices = 0, []
            for at in sorted(map(self._index, self._later)):
                patch, begin = self._patches[at], self._begin(at) - grown
                splices.append((begin, begin + patch.end - patch.start, patch.hunk.new))
                grown += patch.growth
            for start, end, new in reversed(splices):
                self._splice(start, end, new)
        self._later.clear()
        return self._now

    def _index(self, patch: Patch) -> int:
        """The place of one of the last replacements among all."""
        at = bisect_right(self._patches, (patch.start, patch.end), key=_span) - 1
        while self._patches[at] is not patch:
            at -= 1
        return at

    def _splice(self, start: int, end: int, new: bytes) -> None:
        self._now = (Draft.of(self._now) or self._now).spliced(start, end, new)

    def text(self) -> bytes:
        """Its bytes."""
        if self._later and not self._is_folded:
            return replaced(self.base, self.hunks(), 0, len(self.base))
        return self.now().data

    def hunks(self) -> Iterator[Hunk]:
        """The replacements, in the base's bytes and in order."""
        if not self._is_folded:
            return (patch.hunk for patch in self._patches)
        return map(self._hunk, range(len(self._patches)))

    def _hunk(self, at: int) -> Hunk:
        """A patch as one hunk, with the bytes that the text has."""
        hunk = self._patches[at].hunk
        if self._patches[at].joint is None:
            return hunk
        return Hunk(hunk.start, hunk.end, self.now().part(self._begin(at), self._end(at)))

    def add(self, footprints: Sequence[Footprint]) -> Footprint | None:
        """Make an edit's replacements, which are in the base's bytes.

        Returns the earlier footprint that one of them collides with, and then changes nothing.
        What an earlier edit has replaced alike counts once; insertions at one point keep their
        order.
        """
        additions = self._additions(footprints)
        if isinstance(additions, Footprint):
            return additions
        for footprint, hunks in additions:
            self._occupy(footprint)
            for hunk in hunks:
                self._replace(hunk, footprint.edit)
        return None

    def collides(self, footprints: Sequence[Footprint]) -> bool:
        """Whether an earlier footprint keeps them from being added."""
        return isinstance(self._additions(footprints), Footprint)

    def _additions(
        self, footprints: Sequence[Footprint]
    ) -> list[tuple[Footprint, tuple[Hunk, ...]]] | Footprint:
        """The footprints that are new, with the hunks of each that are; or what they collide
        with."""
        additions: list[tuple[Footprint, tuple[Hunk, ...]]] = []
        for footprint in footprints:
            meaning = footprint.meaning
            if meaning in self._said and self._means(meaning, footprint.hunks):
                continue
            if self._is_behind_all(footprint.start):
                additions.append((footprint, footprint.hunks))
                continue
            shared: set[Hunk] = set()
            for other in self._overlapping(footprint):
                alike = agreed(self._whole(other), footprint)
                if alike is None:
                    return other
                shared |= alike
            hunks = footprint.hunks
            if shared:
                hunks = tuple(hunk for hunk in hunks if hunk not in shared)
            if rival := next(filter(None, (self._rival(footprint, hunk) for hunk in hunks)), None):
                return rival
            additions.append((footprint, hunks))
        return additions

    # ------------------------------------------------------------ what earlier edits did

    @property
    def is_bare(self) -> bool:
        """Whether no edit has changed anything."""
        return not self._patches

    def changed(self, start: int, end: int) -> Patch | None:
        """What changes, takes or splits one of the lines `start:end` of the base; lines that are
        put between them change none."""
        patches = self._between(start, end)
        return next((one for one in patches if self._changes_line(one, start, end)), None)

    def disturbs(self, start: int, end: int) -> bool:
        """Whether the lines `start:end` of the base no longer stand together as they did."""
        for patch in self._between(start, end):
            if start < patch.start == patch.end < end or self._changes_line(patch, start, end):
                return True
        return False

    def may_hold(self, quote: bytes, *, lines: bool) -> bool:
        """Whether a place of the quote, of whole `lines` or of characters, could reach into what
        was written; no means no."""
        return not self.is_bare and self._lines.may_hold(quote, self._between, lines=lines)

    def last_writer(self, start: int, end: int) -> str | None:
        """The last of the edits that wrote some of the bytes `start:end` of `text()`, or took some
        there."""
        first, last = self._inside(Hunk(start, end, b""))
        some = self._patches[max(first, last - MOST_NAMED) : last]
        return names_of(some)[-1] if some else None

    def _between(self, start: int, end: int) -> Sequence[Patch]:
        """The replacements that overlap or border on `start:end` of the base."""
        if not self._patches or self._patches[-1].hunk.end < start:
            return ()
        first = bisect_left(self._patches, start, key=_END)
        last = bisect_right(self._patches, end, key=_START)
        return self._patches[first:last]

    def _changes_line(self, patch: Patch, start: int, end: int) -> bool:
        if patch.start < patch.end:
            return patch.start < end and start < patch.end
        if not start <= patch.start <= end or not patch.size:
            return False
        if begins_line(self._based, patch.start):
            return not patch.ends and patch.start < end
        return not (patch.breaks and self.base.startswith((b"\n", b"\r\n"), patch.start))

    def _inside(self, quoted: Hunk) -> tuple[int, int]:
        """Which patches (the first, and the one behind the last) wrote some of the bytes
        `quoted.start:quoted.end` of `text()`, or took some there; (0, 0) if none did."""
        first, last = self._touched(quoted)
        while first < last and self._borders_on(quoted, first):
            first += 1
        while first < last and self._borders_on(quoted, last - 1):
            last -= 1
        return (first, last) if first < last else (0, 0)

    def _borders_on(self, quoted: Hunk, at: int) -> bool:
        """Whether a patch that is touched shares no byte with what is quoted."""
        if not self._patches[at].size:
            return False
        return self._begin(at) >= quoted.end or quoted.start >= self._end(at)

    # ------------------------------------------------------------ footprints

    def _is_behind_all(self, start: int) -> bool:
        """Whether no earlier footprint, and no point where one inserts, reaches an offset of the
        base: edits mostly come in order."""
        if self._islands and self._islands[-1].end > start:
            return False
        return not self._points or self._points[-1] < start

    def _overlapping(self, footprint: Footprint) -> Iterator[Footprint]:
        """The footprints whose hulls share a byte with that of this one, or one of which lies
        strictly inside the other."""
        for island in self._islands[self._touching(footprint)]:
            for other in island.footprints:
                if other.start < footprint.end and footprint.start < other.end:
                    yield other
        first = bisect_right(self._points, footprint.start)
        for point in self._points[first : bisect_left(self._points, footprint.end)]:
            for footprints in self._inserted[point].values():
                yield from (other for other in footprints.values() if other.start == other.end)

    def _means(self, meaning: object, hunks: tuple[Hunk, ...]) -> bool:
        """Whether an earlier footprint means the same there."""
        self._note_meanings()
        return (meaning, hunks) in self._meanings

    def _note_meanings(self) -> None:
        """Note what was meant since."""
        for footprint in self._unmeant:
            meaning = footprint.meaning, footprint.hunks
            self._meanings.add(meaning)
            self._meant.setdefault(footprint.edit, []).append(meaning)
        self._unmeant.clear()

    def _touching(self, footprint: Footprint) -> slice:
        """The islands that overlap the footprint's hull."""
        first = bisect_right(self._islands, footprint.start, key=_END)
        return slice(first, max(first, bisect_left(self._islands, footprint.end, key=_START)))

    def _rival(self, footprint: Footprint, hunk: Hunk) -> Footprint | None:
        """An earlier footprint that inserts at the same point what has no certain order with this,
        or the same: that may be meant as one insertion or as two."""
        if hunk.start < hunk.end:
            return None
        for format, footprints in self._inserted.get(hunk.start, {}).items():
            if format != footprint.format:
                return next(iter(footprints.values()))
            if hunk.new in footprints:
                return footprints[hunk.new]
            for other in self._joined.get(hunk.start, {}).values():
                if other.format == format and self._whole(other).hunks[0].new == hunk.new:
                    return other
        return None

    def _whole(self, footprint: Footprint) -> Footprint:
        """The footprint with its bytes."""
        if not footprint.joined:
            return footprint
        span = footprint.start, footprint.end
        at = bisect_left(self._patches, span, key=_span)
        while not (there := self._patches[at].joint) or there.claim is not footprint:
            at += 1
        return replace(footprint, hunks=(self._hunk(at),), joined=False)

    def _occupy(self, footprint: Footprint) -> None:
        if footprint.meaning is not None:
            self._said.add(footprint.meaning)
            self._unmeant.append(footprint)
        for hunk in footprint.hunks:
            if hunk.start == hunk.end:
                if hunk.start not in self._inserted:
                    insort(self._points, hunk.start)
                footprints = self._inserted.setdefault(hunk.start, {})
                key = id(footprint) if footprint.joined else hunk.new
                footprints.setdefault(footprint.format, {})[key] = footprint
                if footprint.joined:
                    self._joined.setdefault(hunk.start, {})[id(footprint)] = footprint
        start, end = footprint.start, footprint.end
        if start < end and (not self._islands or self._islands[-1].end <= start):
            self._islands.append(_Island(start, end, (footprint,)))
        elif start < end:
            where = self._touching(footprint)
            met = self._islands[where]
            self._islands[where] = [
                _Island(
                    min([start, *map(_START, met)]),
                    max([end, *map(_END, met)]),
                    (*chain.from_iterable(map(_FOOTPRINTS, met)), footprint),
                )
            ]

    def _leave(self, footprint: Footprint) -> None:
        """Forget a footprint of several edits, in whose place another one comes."""
        start, format = footprint.start, footprint.format
        if start == footprint.end:
            del self._joined[start][id(footprint)]
            del self._inserted[start][format][id(footprint)]
            if not self._inserted[start][format]:
                del self._inserted[start][format]
        where = self._touching(footprint)
        for k, island in enumerate(self._islands[where], where.start):
            from_last = reversed(range(len(island.footprints)))
            at = next((i for i in from_last if island.footprints[i] is footprint), None)
            if at is not None:
                others = island.footprints[:at] + island.footprints[at + 1 :]
                self._islands[k] = replace(island, footprints=others)

    def _replace(self, hunk: Hunk, edit: str) -> None:
        """Add a replacement of base bytes that no other one touches but for its borders."""
        patch = Patch(hunk, (edit,))
        if not self._patches or self._patches[-1].hunk.end < hunk.start:
            self._patches.append(patch)
        else:
            at = bisect_right(self._patches, (hunk.start, hunk.end), key=_span)
            self._insert(at, at, patch)
        self._lines.note(hunk)
        self._later.append(patch)
        self._note(edit)

    def _note(self, edit: str) -> None:
        self._makers.add(edit)
        self._since.append(edit)

    def _insert(self, first: int, last: int, patch: Patch) -> None:
        """Put a patch in place of some."""
        self._patches[first:last] = [patch]
        del self._begins[first:]

    def _begin(self, at: int) -> int:
        """The offset in `text()` at which a patch's new bytes begin."""
        while at >= len(self._begins):
            self._count_on()
        return self._begins[at]

    def _end(self, at: int) -> int:
        return self._begin(at) + self._patches[at].size

    def _count_on(self) -> None:
        """Tell where some more patches begin."""
        known = len(self._begins)
        grown = self._grown_before(known)
        run = self._patches[known : known + _RUN]
        growths = accumulate(map(_GROWTH, run), initial=grown)
        self._begins += map(add, map(_START, run), growths)

    def _grown_before(self, at: int) -> int:
        """By how much the patches before one grow the text."""
        if not at:
            return 0
        patch = self._patches[at - 1]
        return self._begin(at - 1) - patch.start + patch.growth

    # ------------------------------------------------------------ what needs earlier edits

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Make replacements that are in the bytes of `text()`; returns the edits that wrote what
        the edit quotes there (the bytes `quoted.start:quoted.end`)."""
        first, last = self._inside(quoted)
        if not last:
            first, last = self._touched(quoted)
        every = first == last or last - first == len(self._patches)
        needs = self._everybody() if every else names_of(self._patches[first:last])
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk, needs)
        if every:
            self._since.clear()
        self._note(edit)
        return needs

    def _everybody(self) -> tuple[str, ...]:
        """The edits that made the text what it is."""
        if len(self._makers) <= MOST_NAMED:
            return names_of(self._patches)
        return tuple(dict.fromkeys(self._since))

    def _touched(self, hunk: Hunk) -> tuple[int, int]:
        """Which patches (the first, and the one behind the last) the bytes `hunk.start:hunk.end`
        of `text()` overlap or border on."""
        while len(self._begins) < len(self._patches) and self._begins[-1:] <= [hunk.end]:
            self._count_on()
        first = bisect_left(self._begins, hunk.start)
        if first and self._end(first - 1) >= hunk.start:
            first -= 1
        return first, bisect_right(self._begins, hunk.end)

    def _fold_one(self, edit: str, format: str, hunk: Hunk, needs: Sequence[str]) -> None:
        """Make one patch of the hunk and all patches that it touches."""
        self._lines.fold(self.now(), hunk, self._between)
        first, last = self._touched(hunk)
        met = self._patches[first:last]
        self._splice(hunk.start, hunk.end, hunk.new)
        self._is_folded = True
        if met:
            patch = self._merged(edit, format, hunk, (first, last), needs)
        else:
            shift = self._grown_before(last)
            moved = Hunk(hunk.start - shift, hunk.end - shift, hunk.new)
            patch = Patch(moved, (edit,))
            self._occupy(Footprint(edit, format, (moved,)))
        self._insert(first, last, patch)

    def _merged(
        self, edit: str, format: str, hunk: Hunk, met: tuple[int, int], needs: Sequence[str]
    ) -> Patch:
        """The patch that takes the place of those that were met, with the hunk, which the text has
        by now."""
        first, last = met[0], met[1] - 1
        patches = self._patches[first : last + 1]
        left = min(hunk.start, self._begin(first))
        right = max(hunk.end, self._end(last))
        start = patches[0].start - (self._begin(first) - left)
        end = patches[-1].end + (right - self._end(last))
        size = right - left + len(hunk.new) - (hunk.end - hunk.start)
        self._note_meanings()
        for patch in patches:
            if patch.joint is None:
                for name in patch.edits:
                    self._meanings.difference_update(self._meant.pop(name, ()))
            else:
                self._leave(patch.joint.claim)
        hunk = Hunk(start, end, b"")
        joint = Joint(
            Footprint(edit, format, (hunk,), joined=True),
            size,
            self._now.part(left, left + min(size, 2)).startswith((b"\n", b"\r\n")),
            size > 0 and self._now.part(left + size - 1, left + size) == b"\n",
        )
        self._occupy(joint.claim)
        return Patch(hunk, joined(names_of(patches), edit, needs), joint)


def _span(patch: Patch) -> tuple[int, int]:
    return patch.start, patch.end
