"""A response's text on its way through the formats.

The formats are asked line by line whether one of theirs begins there; the first that says so takes
its lines, which nobody else looks at again.  What nobody takes is prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchq.formats.marks.fences import OpenFences
from patchq.formats.marks.paths import Known, mentions_other
from patchq.formats.relations import Stated
from patchq.model.values import Edit, Problem


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
    created: set[str] = field(default_factory=set)
    """Paths that earlier edits create."""
    open_fences: OpenFences = field(default_factory=OpenFences)
    """All fences outside of edits, as the reader has met them."""
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = Memory(self)

    def carried_path(self, between: Iterable[str]) -> str | None:
        """The path of the edit before, or the front matter's, for one that names none; None if the
        lines between name another."""
        path = self.path or self.default_path
        others = path and any(mentions_other(line, path, self.known) for line in between)
        return None if others else path

    def known(self, path: str) -> bool:
        """Whether the base has the path, or an earlier edit makes it."""
        return path in self.created or self.base_has(path)


class Memory(dict[type, Any]):
    """What each format remembers of a document while it is read: `memory[Kind]` is the one
    `Kind(doc)`, made when it is first asked for."""

    def __init__(self, doc: Document) -> None:
        super().__init__()
        self._doc = doc

    def __missing__(self, kind: type) -> Any:
        self[kind] = kind(self._doc)
        return self[kind]


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
