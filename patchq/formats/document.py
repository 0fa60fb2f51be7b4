"""A response's text on its way through the formats.

The formats are asked line by line whether one of theirs begins there; the first that says so takes
its lines, which nobody else looks at again.  What nobody takes is prose.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from patchq.formats.marks.fences import OpenFences
from patchq.formats.marks.json_keys import lines_with_keys, speaks_of_edits
from patchq.formats.marks.paths import Known
from patchq.formats.relations import Stated
from patchq.model.values import Edit, Problem

_MANY = 1024
"""So many runs of lines are remembered."""


@dataclass
class Document:
    """The lines (without `\\n`) and what is known while they are read."""

    lines: list[str]
    base_has: Known
    default_path: str | None = None
    path: str | None = None
    """The path of the last edit, for one that names none."""
    low: int = 0
    """The first line (index) behind the last edit: headings are not sought before it."""
    made: set[str] = field(default_factory=set)
    """Paths that earlier edits make."""
    no_json: int = 0
    """The first line (index) behind what was read as JSON and holds no edit."""
    vain: set[tuple[str, ...]] = field(default_factory=set)
    """Runs of `WINDOW` lines on the first of which no JSON begins that may be an edit, whatever
    follows, while some may begin on the next."""
    calm: dict[bool, int] = field(default_factory=dict)
    """The first line (index) behind what was searched for further lines of a diff, and holds none:
    none that changes anything, and (True) none that is led by a sign."""
    fences: OpenFences = field(default_factory=OpenFences)
    """The fences in the prose behind the last edit, as far as they were looked at."""
    open_fences: OpenFences = field(default_factory=OpenFences)
    """All fences outside of edits, as the reader has met them."""
    fences_read: int = 0
    """The first line (index) whose fence was not looked at."""

    def is_vain(self, i: int) -> bool:
        """Whether the JSON on line `i` (an index) is known to be no edit."""
        if i < self.no_json:
            return True
        return i + WINDOW < len(self.lines) and tuple(self.lines[i : i + WINDOW]) in self.vain

    def note_vain(self, i: int) -> None:
        """Remember that no edit begins in JSON on line `i`, as it and the next few lines tell."""
        if len(self.vain) < _MANY and i + WINDOW < len(self.lines):
            self.vain.add(tuple(self.lines[i : i + WINDOW]))

    @cached_property
    def speaks_of_edits(self) -> bool:
        """Whether an edit's key in JSON stands anywhere in the text."""
        return speaks_of_edits("\n".join(self.lines))

    @cached_property
    def _named(self) -> list[int]:
        """The lines (indices) on which an edit's key in JSON, or `edits`, begins."""
        return lines_with_keys("\n".join(self.lines))

    def names_edit(self, first: int, end: int) -> bool:
        """Whether an edit's key in JSON, or `edits`, begins on lines `first` to `end` (indices)."""
        k = bisect_left(self._named, first)
        return k < len(self._named) and self._named[k] < end

    def known(self, path: str) -> bool:
        """Whether the base has the path, or an earlier edit makes it."""
        return path in self.made or self.base_has(path)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a format has read: edits with `at` and without ids (`id=""`, unless the response gives
    one), and the index of the first line behind them.  `top` is the index of the first line that
    belongs to it, where a heading above it does."""

    edits: tuple[Edit, ...]
    end: int
    top: int | None = None
    summary: str | None = None
    warnings: tuple[Problem, ...] = ()
    kept: tuple[int, ...] = ()
    """The lines (indices) from `top` on that are prose all the same."""
    author: str | None = None
    """Who wrote the change, `Name <address>`, where a mail's head says so."""
    stated: Mapping[int, Stated] = field(default_factory=dict)
    """What the edits, by their index, say of each other."""


WINDOW = 4
"""So many lines are mostly enough to see whether a value can be read."""
