"""Edits of one file, kept apart: disjoint replacements of its base, whoever made them.

Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.model import Hunk


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one edit has claimed of the base: `hunks`, and the hull `start:end` round them."""

    edit: str
    format: str
    hunks: tuple[Hunk, ...]

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


class Overlay:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._claims: list[Claimed] = []
        self._patches: list[Patch] = []

    def text(self) -> bytes:
        """The base with every replacement made."""
        parts, position = [], 0
        for patch in self._patches:
            parts += [self.base[position : patch.start], patch.new]
            position = patch.end
        return b"".join([*parts, self.base[position:]])

    @property
    def changed(self) -> bool:
        return bool(self._patches)

    def add(self, claim: Claimed) -> Claimed | None:
        """Make an edit's replacements, which are in the base's bytes.

        Returns the earlier claim that it collides with, and then changes nothing.  What an earlier
        edit has replaced alike counts once; insertions at one point keep their order.
        """
        if not claim.hunks:
            return None
        shared: set[Hunk] = set()
        for other in self._claims:
            agreed = _agreed(other, claim)
            if agreed is None:
                return other
            shared |= agreed
        for hunk in claim.hunks:
            if hunk not in shared:
                self._patches.append(Patch(hunk.start, hunk.end, hunk.new, (claim.edit,)))
        self._patches.sort(key=lambda patch: (patch.start, patch.end))
        self._claims.append(claim)
        return None

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
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk)
        return tuple(dict.fromkeys(name for patch in writers for name in patch.edits))

    def _touched(self, hunk: Hunk) -> list[tuple[Patch, int]]:
        """The patches that the bytes `hunk.start:hunk.end` of `text()` overlap or border on."""
        return [
            (patch, start)
            for patch, start in self._placed()
            if start <= hunk.end and hunk.start <= start + len(patch.new)
        ]

    def _placed(self) -> list[tuple[Patch, int]]:
        """Every patch with the offset in `text()` at which its new bytes begin."""
        placed, shift = [], 0
        for patch in self._patches:
            placed.append((patch, patch.start + shift))
            shift += len(patch.new) - (patch.end - patch.start)
        return placed

    def _fold_one(self, edit: str, format: str, hunk: Hunk) -> None:
        current = self.text()
        touched = self._touched(hunk)
        if touched:
            (first, first_at), (last, last_at) = touched[0], touched[-1]
            left = min(hunk.start, first_at)
            right = max(hunk.end, last_at + len(last.new))
            merged = Patch(
                first.start - (first_at - left),
                last.end + (right - last_at - len(last.new)),
                current[left : hunk.start] + hunk.new + current[hunk.end : right],
                (*dict.fromkeys(name for patch, _ in touched for name in patch.edits), edit),
            )
            gone = {id(patch) for patch, _ in touched}
            self._patches = [patch for patch in self._patches if id(patch) not in gone]
        else:
            back = sum(
                patch.end - patch.start - len(patch.new)
                for patch, start in self._placed()
                if start < hunk.start
            )
            merged = Patch(hunk.start + back, hunk.end + back, hunk.new, (edit,))
        self._patches.append(merged)
        self._patches.sort(key=lambda patch: (patch.start, patch.end))
        self._claims.append(Claimed(edit, format, (Hunk(merged.start, merged.end, merged.new),)))


def _agreed(one: Claimed, other: Claimed) -> set[Hunk] | None:
    """The hunks that both make alike where their hulls overlap, none when they are apart; None
    when they cannot both stand."""
    if one.start == one.end == other.start == other.end:
        # Alike, they may mean one insertion or two.
        return set() if one.format == other.format and one.hunks != other.hunks else None
    if one.end <= other.start or other.end <= one.start:
        clash = one.format != other.format and _insertions(one) & _insertions(other)
        return None if clash else set()
    start, end = max(one.start, other.start), min(one.end, other.end)
    ours, theirs = _within(one, start, end), _within(other, start, end)
    return None if ours is None or ours != theirs else ours


def _insertions(claim: Claimed) -> set[int]:
    return {hunk.start for hunk in claim.hunks if hunk.start == hunk.end}


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
