"""Which lines may show that an edit is there already.

Who names a base has seen its lines, and means what it would write again.  On a tip that has moved
since, only lines that were changed since may show it; without a declared base any line may.  A line
that another edit of the batch takes away never does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from patchq.core.model.values import Edit
from patchq.core.plan.files import File
from patchq.core.resolve.ladder import Found, Missed

Since = Callable[[str], Collection[tuple[int, int]]]
"""The lines (0-based, half-open) of a file, by its path, that were changed since it was seen."""


@dataclass(slots=True)
class Proofs:
    """What may be there already of a batch, and what shows it; `refuted` are edits (by `id`) whose
    proof another edit takes away, with that one."""

    declared: bool
    since: Since | None
    refuted: Mapping[int, str]
    _given: list[tuple[Edit, File, frozenset[int]]] = field(default_factory=list)

    def asks(self, edit: Edit, *, on_base: bool) -> bool:
        """Whether it may be there already where its old text has a place."""
        seen = self.declared or (self.since is not None and not on_base)
        return not seen and id(edit) not in self.refuted

    def stands(self, edit: Edit, file: File, found: Found | Missed, *, on_base: bool) -> bool:
        """Whether what was found may stand: it is not said to be there already, or rightly so."""
        if isinstance(found, Missed) or not found.already:
            return True
        return self.hold(edit, file, found, on_base=on_base)

    def hold(self, edit: Edit, file: File, found: Found, *, on_base: bool) -> bool:
        """Whether what was found shows that the edit is there already."""
        if not on_base:
            return True
        if id(edit) in self.refuted:
            return False
        if self.since is not None:
            changed = self.since(file.origin or file.path)
            if not any(first <= line < end for first, end in changed for line in found.proof):
                return False
        self._given.append((edit, file, found.proof))
        return True

    def taken_away(self) -> dict[int, str]:
        """The edits (by `id`) whose proof another edit takes away, with that one."""
        taken: dict[int, str] = {}
        removed: dict[int, list[tuple[int, int, str]]] = {}
        for edit, file, lines in self._given:
            if id(file) not in removed:
                removed[id(file)] = list(file.overlay.removed())
            starts = file.text.starts
            for line in lines:
                at = bisect_right(removed[id(file)], starts[line], key=_end)
                if at < len(removed[id(file)]) and removed[id(file)][at][0] < starts[line + 1]:
                    taken[id(edit)] = removed[id(file)][at][2]
                    break
        return taken


def _end(run: tuple[int, int, str]) -> int:
    return run[1]
