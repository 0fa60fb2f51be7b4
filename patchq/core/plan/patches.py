"""What edits claim of a file's base, and what is put in place of its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import Struct

from patchq.core.model.values import Edit, Hunk
from patchq.core.resolve.ladder import Found

_EDITS = attrgetter("edits")
MOST_NAMED = 50
"""Of more edits than these that another one needs, those go unnamed that the named ones need."""


class Footprint(Struct, frozen=True):
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


def footprints(edit: Edit, found: Found, meaning: object) -> list[Footprint]:
    """What the edit claims where it was found."""
    return [Footprint(edit.id, edit.format, run, meaning) for run in found.runs if run]


class Joint(Struct, frozen=True):
    """What several edits wrote that met: the text has the bytes, `size` of them; whether they begin
    and end with the end of a line; and what they claim of the base."""

    claim: Footprint
    size: int
    breaks: bool
    ends: bool


class Patch(Struct, frozen=True):
    """One replacement of the base's bytes, and the edits that it comes from; the hunk of several
    that met has no bytes of its own."""

    hunk: Hunk
    edits: tuple[str, ...]
    joint: Joint | None = None

    @property
    def start(self) -> int:
        return self.hunk.start

    @property
    def end(self) -> int:
        return self.hunk.end

    @property
    def size(self) -> int:
        return self.joint.size if self.joint else len(self.hunk.new)

    @property
    def growth(self) -> int:
        """How many bytes more it writes than it takes."""
        size = self.joint.size if self.joint else len(self.hunk.new)
        return size - (self.hunk.end - self.hunk.start)

    @property
    def breaks(self) -> bool:
        """Whether it begins with the end of a line."""
        return self.joint.breaks if self.joint else self.hunk.new.startswith((b"\n", b"\r\n"))

    @property
    def ends(self) -> bool:
        """Whether it ends with one."""
        return self.joint.ends if self.joint else self.hunk.new.endswith(b"\n")


def names_of(patches: Iterable[Patch]) -> tuple[str, ...]:
    """The edits that they come from."""
    return tuple(dict.fromkeys(chain.from_iterable(map(_EDITS, patches))))


def joined(names: Sequence[str], edit: str, needs: Sequence[str]) -> tuple[str, ...]:
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
