"""Edits of one file, kept apart: disjoint replacements of its base, whoever made them.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from patchq.model.values import Hunk

_END = attrgetter("end")
_START = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Claimed:
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
    """One replacement of the base's bytes `start:end`, and the edits that it comes from."""

    start: int
    end: int
    new: bytes
    edits: tuple[str, ...]

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class _Island:
    """A stretch of the base that is under claims, which agree wherever they overlap."""

    start: int
    end: int
    claims: tuple[Claimed, ...]


class Overlay:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._islands: list[_Island] = []
        """In order, without overlap; their ends are in order, too."""
        self._inserted: dict[int, dict[str, dict[bytes, Claimed]]] = {}
        """The claims that insert at an offset, by their format and what they insert."""
        self._points: list[int] = []
        self._meanings: dict[tuple[object, tuple[Hunk, ...]], str] = {}
        self._patches: list[Patch] = []
        self._text: bytes | None = base

    def text(self) -> bytes:
        """The base with every replacement made."""
        if self._text is None:
            parts, position = [], 0
            for patch in self._patches:
                parts += [self.base[position : patch.start], patch.new]
                position = patch.end
            self._text = b"".join([*parts, self.base[position:]])
        return self._text

    def hunks(self) -> Iterator[Hunk]:
        """The replacements, in the base's bytes and in order."""
        return (Hunk(patch.start, patch.end, patch.new) for patch in self._patches)

    @property
    def changed(self) -> bool:
        return bool(self._patches)

    def add(self, claims: Sequence[Claimed]) -> Claimed | None:
        """Make an edit's replacements, which are in the base's bytes.

        Returns the earlier claim that one of them collides with, and then changes nothing.  What an
        earlier edit has replaced alike counts once; insertions at one point keep their order.
        """
        additions: list[tuple[Claimed, Sequence[Hunk]]] = []
        for claim in claims:
            if claim.meaning is not None and (claim.meaning, claim.hunks) in self._meanings:
                continue
            shared: set[Hunk] = set()
            for other in self._overlapping(claim):
                agreed = _agreed(other, claim)
                if agreed is None:
                    return other
                shared |= agreed
            hunks: Sequence[Hunk] = claim.hunks
            if shared:
                hunks = [hunk for hunk in hunks if hunk not in shared]
            rival = next(filter(None, (self._rival(claim, hunk) for hunk in hunks)), None)
            if rival is not None:
                return rival
            additions.append((claim, hunks))
        for claim, hunks in additions:
            self._occupy(claim)
            for hunk in hunks:
                self._replace(Patch(hunk.start, hunk.end, hunk.new, (claim.edit,)))
        return None

    # ------------------------------------------------------------ claims

    def _overlapping(self, claim: Claimed) -> Iterator[Claimed]:
        """The claims whose hulls share a byte with the claim's, or one of which lies strictly
        inside the other."""
        for island in self._islands[self._touching(claim)]:
            for other in island.claims:
                if other.start < claim.end and claim.start < other.end:
                    yield other
        first, last = bisect_right(self._points, claim.start), bisect_left(self._points, claim.end)
        for point in self._points[first:last]:
            for claims in self._inserted[point].values():
                yield from (other for other in claims.values() if other.start == other.end)

    def _touching(self, claim: Claimed) -> slice:
        """The islands that overlap the claim's hull."""
        if not self._islands or self._islands[-1].end <= claim.start:  # edits mostly come in order
            return slice(len(self._islands), len(self._islands))
        first = bisect_right(self._islands, claim.start, key=_END)
        return slice(first, max(first, bisect_left(self._islands, claim.end, key=_START)))

    def _rival(self, claim: Claimed, hunk: Hunk) -> Claimed | None:
        """An earlier claim that inserts at the same point what has no certain order with this, or
        the same: that may be meant as one insertion or as two."""
        if hunk.start < hunk.end:
            return None
        for format, claims in self._inserted.get(hunk.start, {}).items():
            if format != claim.format:
                return next(iter(claims.values()))
            if hunk.new in claims:
                return claims[hunk.new]
        return None

    def _occupy(self, claim: Claimed) -> None:
        if claim.meaning is not None:
            self._meanings[claim.meaning, claim.hunks] = claim.edit
        for hunk in claim.hunks:
            if hunk.start == hunk.end:
                if hunk.start not in self._inserted:
                    insort(self._points, hunk.start)
                claims = self._inserted.setdefault(hunk.start, {})
                claims.setdefault(claim.format, {})[hunk.new] = claim
        if claim.start < claim.end:
            where = self._touching(claim)
            met = self._islands[where]
            self._islands[where] = [
                _Island(
                    min([claim.start, *map(_START, met)]),
                    max([claim.end, *map(_END, met)]),
                    (*(other for island in met for other in island.claims), claim),
                )
            ]

    def _replace(self, patch: Patch) -> None:
        if not self._patches or self._patches[-1].end < patch.start:
            self._patches.append(patch)
        else:
            insort(self._patches, patch, key=attrgetter("span"))
        self._text = None

    # ------------------------------------------------------------ what needs earlier edits

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Make replacements that are in the bytes of `text()`; returns the edits that wrote what
        the edit quotes there (the bytes `quoted.start:quoted.end`)."""
        touched = self._touched(quoted)
        inside = [
            patch
            for patch, start in touched
            if not patch.new or (start < quoted.end and quoted.start < start + len(patch.new))
        ]
        writers = inside or [patch for patch, _ in touched] or self._patches
        needs = tuple(dict.fromkeys(name for patch in writers for name in patch.edits))
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk)
        return needs

    def _touched(self, hunk: Hunk) -> list[tuple[Patch, int]]:
        """The patches that the bytes `hunk.start:hunk.end` of `text()` overlap or border on, each
        with the offset in `text()` at which its new bytes begin."""
        found, shift = [], 0
        for patch in self._patches:
            start = patch.start + shift
            if start > hunk.end:
                break
            if hunk.start <= start + len(patch.new):
                found.append((patch, start))
            shift += len(patch.new) - (patch.end - patch.start)
        return found

    def _fold_one(self, edit: str, format: str, hunk: Hunk) -> None:
        """Make one patch of the hunk and all patches that it touches."""
        current = self.text()
        touched = self._touched(hunk)
        if touched:
            (first, first_at), (last, last_at) = touched[0], touched[-1]
            left, right = min(hunk.start, first_at), max(hunk.end, last_at + len(last.new))
            merged = Patch(
                first.start - (first_at - left),
                last.end + (right - last_at - len(last.new)),
                current[left : hunk.start] + hunk.new + current[hunk.end : right],
                tuple(dict.fromkeys([*(n for patch, _ in touched for n in patch.edits), edit])),
            )
            gone = {id(patch) for patch, _ in touched}
            self._patches = [patch for patch in self._patches if id(patch) not in gone]
        else:
            back = self._shift_before(hunk.start)
            merged = Patch(hunk.start - back, hunk.end - back, hunk.new, (edit,))
        self._meanings = {
            meaning: by for meaning, by in self._meanings.items() if by not in merged.edits
        }
        self._occupy(Claimed(edit, format, (Hunk(*merged.span, merged.new),)))
        self._replace(merged)

    def _shift_before(self, position: int) -> int:
        """How much further than in the base that byte of `text()` is."""
        shift = 0
        for patch in self._patches:
            if patch.start + shift >= position:
                break
            shift += len(patch.new) - (patch.end - patch.start)
        return shift


def _agreed(one: Claimed, other: Claimed) -> set[Hunk] | None:
    """The hunks that both make alike where their hulls overlap; None when they cannot both
    stand."""
    start, end = max(one.start, other.start), min(one.end, other.end)
    ours, theirs = _within(one, start, end), _within(other, start, end)
    return None if ours is None or ours != theirs else ours


def _within(claim: Claimed, start: int, end: int) -> set[Hunk] | None:
    """The hunks inside `start:end`; None when one of them crosses its border."""
    inside = set()
    for hunk in claim.hunks:
        if (hunk.end <= start and hunk.start < start) or (hunk.start >= end and hunk.end > end):
            continue
        if hunk.start < start or hunk.end > end:
            return None
        inside.add(hunk)
    return inside
