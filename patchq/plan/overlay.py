"""The edits of one file, kept apart: disjoint replacements of its base, whoever made them.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from patchq.model.values import Hunk
from patchq.resolve.ladder import replaced
from patchq.text.lines import BOM, plain_typography

_END = attrgetter("end")
_START = attrgetter("start")

_LONG_LINE = 1000
"""Of a longer line that is changed inside, it is not remembered what it is now."""


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
        self._meanings: dict[tuple[object, tuple[Hunk, ...]], str] = {}
        self._patches: list[Patch] = []
        self._written: set[bytes] = set()
        """The lines that replacements wrote, as whole as they stand now, without blanks round
        them."""
        self._mingled = False
        """Whether two replacements met on one line, or one changed a long one, so that not all
        such lines are known."""
        self._text: bytes | None = base

    def text(self) -> bytes:
        """The base with every replacement made."""
        if self._text is None:
            self._text = replaced(self.base, self.hunks(), 0, len(self.base))
        return self._text

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
        sought = [line for line in map(_bare, quote.split(b"\n")) if line]
        if self._mingled or not sought:
            return bool(self._patches)
        if lines:
            return not self._written.isdisjoint(sought)
        written = b"\n".join(self._written)
        return any(line in written for line in sought)

    def writers(self, start: int, end: int) -> tuple[str, ...]:
        """The edits that wrote some of the bytes `start:end` of `text()`, or took some there."""
        inside = self._inside(Hunk(start, end, b""), self._touched(Hunk(start, end, b""))[0])
        return tuple(dict.fromkeys(name for patch in inside for name in patch.edits))

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
        return self.base[:at] in (b"", BOM) or self.base.startswith(b"\n", at - 1)

    @staticmethod
    def _inside(quoted: Hunk, touched: Sequence[tuple[Patch, int]]) -> list[Patch]:
        return [
            patch
            for patch, start in touched
            if not patch.hunk.new
            or (start < quoted.end and quoted.start < start + len(patch.hunk.new))
        ]

    def _remember(self, hunk: Hunk) -> None:
        """Note the lines that a replacement of the base's bytes writes."""
        if self._mingled:
            return
        first, last = hunk.start, hunk.end
        if not self._begins_line(first):
            first = self.base.rfind(b"\n", max(first - _LONG_LINE, 0), first) + 1
        if not (self._begins_line(last) and hunk.new.endswith(b"\n")):
            last = self.base.find(b"\n", last, last + _LONG_LINE) + 1 or len(self.base)
        if (first, last) != (hunk.start, hunk.end):
            self._mingled = max(hunk.start - first, last - hunk.end) > _LONG_LINE or any(
                other.hunk.start < hunk.start or hunk.end < other.hunk.end
                for other in self._between(first, last)
            )
        if not self._mingled:
            whole = self.base[first : hunk.start] + hunk.new + self.base[hunk.end : last]
            self._written.update(map(_bare, whole.split(b"\n")))

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
            self._meanings[footprint.meaning, footprint.hunks] = footprint.edit
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
                    (*(other for island in met for other in island.footprints), footprint),
                )
            ]

    def _replace(self, patch: Patch) -> None:
        self._remember(patch.hunk)
        if not self._patches or self._patches[-1].hunk.end < patch.hunk.start:
            self._patches.append(patch)
        else:
            insort(self._patches, patch, key=lambda other: (other.hunk.start, other.hunk.end))
        self._text = None

    # ------------------------------------------------------------ what needs earlier edits

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Make replacements that are in the bytes of `text()`; returns the edits that wrote what
        the edit quotes there (the bytes `quoted.start:quoted.end`)."""
        touched, _ = self._touched(quoted)
        writers = self._inside(quoted, touched) or [patch for patch, _ in touched] or self._patches
        needs = tuple(dict.fromkeys(name for patch in writers for name in patch.edits))
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk)
        return needs

    def _touched(self, hunk: Hunk) -> tuple[list[tuple[Patch, int]], int]:
        """The patches that the bytes `hunk.start:hunk.end` of `text()` overlap or border on, each
        with the offset in `text()` at which its new bytes begin; and how much further than in the
        base the byte behind them is there."""
        touched, shift = [], 0
        for patch in self._patches:
            start = patch.hunk.start + shift
            if start > hunk.end:
                break
            if hunk.start <= start + len(patch.hunk.new):
                touched.append((patch, start))
            shift += len(patch.hunk.new) - (patch.hunk.end - patch.hunk.start)
        return touched, shift

    def _fold_one(self, edit: str, format: str, hunk: Hunk) -> None:
        """Make one patch of the hunk and all patches that it touches."""
        current = self.text()
        touched, shift = self._touched(hunk)
        if touched:
            (first, first_at), (last, last_at) = touched[0], touched[-1]
            last_end = last_at + len(last.hunk.new)
            left, right = min(hunk.start, first_at), max(hunk.end, last_end)
            merged = Hunk(
                first.hunk.start - (first_at - left),
                last.hunk.end + (right - last_end),
                current[left : hunk.start] + hunk.new + current[hunk.end : right],
            )
            gone = {id(patch) for patch, _ in touched}
            self._patches = [patch for patch in self._patches if id(patch) not in gone]
        else:
            merged = Hunk(hunk.start - shift, hunk.end - shift, hunk.new)
        edits = tuple(
            dict.fromkeys([*(name for patch, _ in touched for name in patch.edits), edit])
        )
        self._meanings = {meaning: by for meaning, by in self._meanings.items() if by not in edits}
        self._occupy(Footprint(edit, format, (merged,)))
        self._replace(Patch(merged, edits))


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
