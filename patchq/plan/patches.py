"""What edits claim of a file's base, and what is put in place of its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from patchq.model.values import Hunk

_EDITS = attrgetter("edits")
MOST_NAMED = 50
"""Of more edits than these that another one needs, those go unnamed that the named ones need."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one edit has claimed of the base: `hunks`, at least one, in a run of lines that it
    quotes, and so the hull `start:end` round them.  `meaning` is equal for edits that mean one;
    `joined` says that it stands for several, and that its hunk lacks the bytes."""

    edit: str
    format: str
    hunks: tuple[Hunk, ...]
    meaning: object = None
    joined: bool = False

    @property
    def start(self) -> int:
        return self.hunks[0].start

    @property
    def end(self) -> int:
        return self.hunks[-1].end


@dataclass(frozen=True, slots=True)
class Patch:
    """`size` bytes in place of the base's bytes `start:end`, and the edits that they come from."""

    start: int
    end: int
    size: int
    growth: int
    """How many bytes more it writes than it takes."""
    breaks: bool
    """Whether it begins with the end of a line."""
    ends: bool
    """Whether it ends with one."""
    edits: tuple[str, ...]
    new: bytes | None
    """What it writes; None where several became one: the text has it."""
    claim: Footprint | None = None
    """What it claims of the base, where several became one."""

    @classmethod
    def of(cls, hunk: Hunk, edits: tuple[str, ...]) -> Patch:
        new = hunk.new
        growth = len(new) - (hunk.end - hunk.start)
        breaks = new.startswith((b"\n", b"\r\n"))
        ends = new.endswith(b"\n")
        return cls(hunk.start, hunk.end, len(new), growth, breaks, ends, edits, new)


def names_of(patches: Iterable[Patch]) -> tuple[str, ...]:
    """The edits that they come from."""
    return tuple(dict.fromkeys(chain.from_iterable(map(_EDITS, patches))))


def joint(names: Sequence[str], edit: str, needs: Sequence[str]) -> tuple[str, ...]:
    """The edits that a patch comes from, the last of them `edit`; of many the first, and those
    that it does not need itself."""
    if len(names) > MOST_NAMED:
        needed = frozenset(needs)
        names = [names[0], *(name for name in names[1:] if name not in needed)]
    return tuple(dict.fromkeys([*names, edit]))


def agreed(one: Footprint, other: Footprint) -> set[Hunk] | None:
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
