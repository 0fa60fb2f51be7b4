"""The edits of one file, kept apart: disjoint replacements of its base, whoever made them.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from operator import attrgetter

from patchq.model.values import Hunk
from patchq.resolve.ladder import replaced
from patchq.text.lines import BOM, Text, plain_typography

_END = attrgetter("end")
_START = attrgetter("start")
_GROWTH = attrgetter("growth")
_EDITS = attrgetter("edits")
_FOOTPRINTS = attrgetter("footprints")

_LONG_LINE = 1000
"""Of a longer line that is changed inside, it is not remembered what it is now."""


_Meaning = tuple[object, tuple[Hunk, ...]]


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one edit has claimed of the base: `hunks`, at least one, in a run of lines that it
    quotes, and so the hull `start:end` round them.  `meaning` is equal for edits that mean one."""

    edit: str
    format: str
    hunks: tuple[Hunk, ...]
    meaning: object = None

    @property
    def start(self) -> int:
        return self.hunks[0].start

    @property
    def end(self) -> int:
        return self.hunks[-1].end


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement of the base's bytes, and the edits that it comes from."""

    hunk: Hunk
    edits: tuple[str, ...]
    merged: Footprint | None = None
    """What it claims of the base, where several became one."""

    @property
    def growth(self) -> int:
        """How many bytes more it writes than it takes."""
        return len(self.hunk.new) - (self.hunk.end - self.hunk.start)


@dataclass(frozen=True, slots=True)
class _Island:
    """A stretch of the base that is under footprints, which agree wherever they overlap."""

    start: int
    end: int
    footprints: tuple[Footprint, ...]


class Overlay:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._islands: list[_Island] = []
        """In order, without overlap; their ends are in order, too."""
        self._inserted: dict[int, dict[str, dict[bytes, Footprint]]] = {}
        """The footprints that insert at an offset, by their format and what they insert."""
        self._points: list[int] = []
        self._meanings: set[_Meaning] = set()
        self._meant: dict[str, list[_Meaning]] = {}
        """The same by the edits."""
        self._patches: list[Patch] = []
        self._grown = [0]
        """By how much all patches before each of the first ones grow the text."""
        self._written: set[bytes] = set()
        """The lines that replacements wrote, as whole as they stand now, without blanks round
        them."""
        self._unread: list[Hunk] = []
        """Replacements of the base whose lines are not among them yet; most are never asked for."""
        self._mingled = False
        """Whether two replacements met on one line, or one changed a long one, so that not all
        such lines are known."""
        self._now = Text(base)
        self._later: list[tuple[int, Patch]] = []
        """The replacements that `_now` lacks, with their places among the others."""

    def now(self) -> Text:
        """The base with every replacement made."""
        if len(self._later) == 1:
            at, patch = self._later[0]
            hunk, grown = patch.hunk, self._grown_before(at)
            self._now = self._now.spliced(hunk.start + grown, hunk.end + grown, hunk.new)
        elif self._later:
            self._now = Text(replaced(self.base, self.hunks(), 0, len(self.base)))
        self._later.clear()
        return self._now

    def text(self) -> bytes:
        """Its bytes."""
        return self.now().data

    def hunks(self) -> Iterator[Hunk]:
        """The replacements, in the base's bytes and in order."""
        return (patch.hunk for patch in self._patches)

    def removed(self) -> Iterator[tuple[int, int, str]]:
        """The runs of the base's bytes that are replaced, in order, each with an edit that does."""
        for patch in self._patches:
            if patch.hunk.start < patch.hunk.end:
                yield patch.hunk.start, patch.hunk.end, patch.edits[0]

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
                self._replace(Patch(hunk, (footprint.edit,)))
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
            if meaning is not None and (meaning, footprint.hunks) in self._meanings:
                continue
            shared: set[Hunk] = set()
            for other in self._overlapping(footprint):
                agreed = _agreed(other, footprint)
                if agreed is None:
                    return other
                shared |= agreed
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
        return next((one for one in patches if self._changes_line(one.hunk, start, end)), None)

    def disturbs(self, start: int, end: int) -> bool:
        """Whether the lines `start:end` of the base no longer stand together as they did."""
        return any(
            start < patch.hunk.start == patch.hunk.end < end
            or self._changes_line(patch.hunk, start, end)
            for patch in self._between(start, end)
        )

    def may_hold(self, quote: bytes, *, lines: bool) -> bool:
        """Whether a place of the quote, of whole `lines` or of characters, could reach into what
        was written; no means no."""
        self._read()
        sought = [line for line in map(_bare, quote.split(b"\n")) if line]
        if self._mingled or not sought:
            return bool(self._patches)
        if lines:
            return not self._written.isdisjoint(sought)
        written = b"\n".join(self._written)
        return any(line in written for line in sought)

    def writers(self, start: int, end: int) -> tuple[str, ...]:
        """The edits that wrote some of the bytes `start:end` of `text()`, or took some there."""
        inside = self._inside(Hunk(start, end, b""))
        return _names(inside)

    def _between(self, start: int, end: int) -> Sequence[Patch]:
        """The replacements that overlap or border on `start:end` of the base."""
        if not self._patches or self._patches[-1].hunk.end < start:
            return ()
        first = bisect_left(self._patches, start, key=lambda patch: patch.hunk.end)
        last = bisect_right(self._patches, end, key=lambda patch: patch.hunk.start)
        return self._patches[first:last]

    def _changes_line(self, hunk: Hunk, start: int, end: int) -> bool:
        if hunk.start < hunk.end:
            return hunk.start < end and start < hunk.end
        if not start <= hunk.start <= end or not hunk.new:
            return False
        if self._begins_line(hunk.start):
            return not hunk.new.endswith(b"\n") and hunk.start < end
        ended = self.base.startswith((b"\n", b"\r\n"), hunk.start)
        return not (ended and hunk.new.startswith((b"\n", b"\r\n")))

    def _begins_line(self, at: int) -> bool:
        return _begins_line(self.base, at)

    def _inside(self, quoted: Hunk) -> list[Patch]:
        """The patches that wrote some of the bytes `quoted.start:quoted.end` of `text()`, or took
        some there."""
        return [
            self._patches[at]
            for at in range(*self._touched(quoted))
            if not self._patches[at].hunk.new
            or (self._begin(at) < quoted.end and quoted.start < self._end(at))
        ]

    def _read(self) -> None:
        """Note the lines of the replacements that were made since."""
        for hunk in self._unread:
            if self._mingled:
                break
            first, last = self._remember(self.base, hunk.start, hunk.new, hunk.end)
            self._mingled |= (first, last) != (hunk.start, hunk.end) and any(
                other.hunk.start < hunk.start or hunk.end < other.hunk.end
                for other in self._between(first, last)
            )
        self._unread.clear()

    def _remember(self, text: bytes, start: int, new: bytes, end: int) -> tuple[int, int]:
        """Note the lines that stand now where the bytes `start:end` of `text` become `new`; returns
        the bytes of the text that are parts of them."""
        first, last = start, end
        if not _begins_line(text, first):
            first = text.rfind(b"\n", max(first - _LONG_LINE, 0), first) + 1
        if not (_begins_line(text, last) and new.endswith(b"\n")):
            last = text.find(b"\n", last, last + _LONG_LINE) + 1 or len(text)
        if max(start - first, last - end) > _LONG_LINE:
            self._mingled = True
        else:
            whole = text[first:start] + new + text[end:last] if first < start or end < last else new
            self._written.update(map(_bare, whole.split(b"\n")))
        return first, last

    # ------------------------------------------------------------ footprints

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

    def _touching(self, footprint: Footprint) -> slice:
        """The islands that overlap the footprint's hull."""
        # Edits mostly come in order.
        if not self._islands or self._islands[-1].end <= footprint.start:
            return slice(len(self._islands), len(self._islands))
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
        return None

    def _occupy(self, footprint: Footprint) -> None:
        if footprint.meaning is not None:
            meaning = footprint.meaning, footprint.hunks
            self._meanings.add(meaning)
            self._meant.setdefault(footprint.edit, []).append(meaning)
        for hunk in footprint.hunks:
            if hunk.start == hunk.end:
                if hunk.start not in self._inserted:
                    insort(self._points, hunk.start)
                footprints = self._inserted.setdefault(hunk.start, {})
                footprints.setdefault(footprint.format, {})[hunk.new] = footprint
        if footprint.start < footprint.end:
            where = self._touching(footprint)
            met = self._islands[where]
            self._islands[where] = [
                _Island(
                    min([footprint.start, *map(_START, met)]),
                    max([footprint.end, *map(_END, met)]),
                    (*chain.from_iterable(map(_FOOTPRINTS, met)), footprint),
                )
            ]

    def _leave(self, footprint: Footprint) -> None:
        """Forget a footprint in whose place another one comes."""
        inserted = self._inserted.get(footprint.start, {}).get(footprint.format, {})
        if inserted.get(footprint.hunks[0].new) is footprint:
            del inserted[footprint.hunks[0].new]
        where = self._touching(footprint)
        for k, island in enumerate(self._islands[where], where.start):
            from_last = reversed(range(len(island.footprints)))
            at = next((i for i in from_last if island.footprints[i] is footprint), None)
            if at is not None:
                others = island.footprints[:at] + island.footprints[at + 1 :]
                self._islands[k] = replace(island, footprints=others)

    def _replace(self, patch: Patch) -> None:
        """Add a replacement of base bytes that no other one touches but for its borders."""
        hunk = patch.hunk
        at = len(self._patches)
        if at and self._patches[-1].hunk.end >= hunk.start:
            at = bisect_right(self._patches, (hunk.start, hunk.end), key=_span)
        self._unread.append(hunk)
        self._insert(at, at, patch)
        self._later.append((at, patch))

    def _insert(self, first: int, last: int, patch: Patch) -> None:
        """Put a patch in place of some."""
        self._patches[first:last] = [patch]
        del self._grown[first + 1 :]

    def _grown_before(self, at: int) -> int:
        """By how much the patches before one grow the text."""
        known = len(self._grown)
        if at >= known:
            more = map(_GROWTH, islice(self._patches, known - 1, at))
            self._grown += islice(accumulate(more, initial=self._grown[-1]), 1, None)
        return self._grown[at]

    # ------------------------------------------------------------ what needs earlier edits

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Make replacements that are in the bytes of `text()`; returns the edits that wrote what
        the edit quotes there (the bytes `quoted.start:quoted.end`)."""
        first, last = self._touched(quoted)
        writers = self._inside(quoted) or self._patches[first:last] or self._patches
        needs = _names(writers)
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk)
        return needs

    def _touched(self, hunk: Hunk) -> tuple[int, int]:
        """Which patches (the first, and the one behind the last) the bytes `hunk.start:hunk.end`
        of `text()` overlap or border on."""
        every = range(len(self._patches))
        last = bisect_right(every, hunk.end, key=self._begin)
        return bisect_left(every, hunk.start, hi=last, key=self._end), last

    def _begin(self, at: int) -> int:
        """The offset in `text()` at which a patch's new bytes begin."""
        return self._patches[at].hunk.start + self._grown_before(at)

    def _end(self, at: int) -> int:
        return self._begin(at) + len(self._patches[at].hunk.new)

    def _fold_one(self, edit: str, format: str, hunk: Hunk) -> None:
        """Make one patch of the hunk and all patches that it touches."""
        self._read()
        current = self.now()
        first, last = self._touched(hunk)
        met = self._patches[first:last]
        shift = self._grown_before(last)
        if met:
            left, right = min(hunk.start, self._begin(first)), max(hunk.end, self._end(last - 1))
            merged = Hunk(
                met[0].hunk.start - (self._begin(first) - left),
                met[-1].hunk.end + (right - self._end(last - 1)),
                current.data[left : hunk.start] + hunk.new + current.data[hunk.end : right],
            )
        else:
            merged = Hunk(hunk.start - shift, hunk.end - shift, hunk.new)
        for name in _names(patch for patch in met if patch.merged is None):
            self._meanings.difference_update(self._meant.pop(name, ()))
        edits = tuple(dict.fromkeys((*_names(met), edit)))
        footprint = Footprint(edit, format, (merged,))
        for patch in met:
            if patch.merged:
                self._leave(patch.merged)
        self._occupy(footprint)
        if not self._mingled:
            self._remember(current.data, hunk.start, hunk.new, hunk.end)
        self._insert(first, last, Patch(merged, edits, footprint if met else None))
        self._now = current.spliced(hunk.start, hunk.end, hunk.new)


def _begins_line(text: bytes, at: int) -> bool:
    return not at or text.startswith(b"\n", at - 1) or (at == len(BOM) and text.startswith(BOM))


def _names(patches: Iterable[Patch]) -> tuple[str, ...]:
    """The edits that they come from."""
    return tuple(dict.fromkeys(chain.from_iterable(map(_EDITS, patches))))


def _span(patch: Patch) -> tuple[int, int]:
    return patch.hunk.start, patch.hunk.end


def _bare(line: bytes) -> bytes:
    """A line as every reading may see it."""
    return plain_typography(line).strip()


def _agreed(one: Footprint, other: Footprint) -> set[Hunk] | None:
    """The hunks that both make alike where their hulls overlap; None when they cannot both
    stand."""
    start, end = max(one.start, other.start), min(one.end, other.end)
    ours, theirs = _within(one, start, end), _within(other, start, end)
    return None if ours is None or ours != theirs else ours


def _within(footprint: Footprint, start: int, end: int) -> set[Hunk] | None:
    """The hunks inside `start:end`; None when one of them crosses its border."""
    inside = set()
    for hunk in footprint.hunks:
        if (hunk.end <= start and hunk.start < start) or (hunk.start >= end and hunk.end > end):
            continue
        if hunk.start < start or hunk.end > end:
            return None
        inside.add(hunk)
    return inside
