"""Edits of one file that build on each other, and are there already for what they come to.

Each of them alone shows nothing of it: the first may write what the next takes away again.  But
where all of them, the last one first, can be taken back in the text as it is, and they make this
very text of what is left, then it is what they come to, and a second delivery of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchq.model.listing import Listing
from patchq.model.ops import InContext, Occurrences, PatchHunk, Replace, ReplaceText, halves
from patchq.model.values import Edit, Entry, Tree
from patchq.resolve.ladder import Found, replaced
from patchq.resolve.match import Hints, match
from patchq.text.lines import Text

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class WithFile:
    """A tree in which one file has another text."""

    tree: Tree
    path: str
    data: bytes

    def entry(self, path: str) -> Entry | None:
        return self.tree.entry(path)

    def read(self, path: str) -> bytes:
        return self.data if path == self.path else self.tree.read(path)

    def names(self, directory: str) -> tuple[str, ...]:
        return self.tree.names(directory)

    def paths(self) -> Iterator[str]:
        return self.tree.paths()

    def listing(self) -> Listing:
        return self.tree.listing()

    def filtered(self, path: str) -> str | None:
        return self.tree.filtered(path)


def chains(edits: Sequence[Edit], states: Mapping[str, str]) -> Iterator[list[Edit]]:
    """The edits of one file that speak of the same lines, in their order, if some of them would be
    applied: two at least."""
    groups: list[list[int]] = []
    group_of: list[int] = []
    by_line: dict[str, int] = {}
    for at, edit in enumerate(edits):
        own = at
        groups.append([at])
        group_of.append(at)
        for line in _spoken_of(edit):
            other = group_of[by_line.setdefault(line, at)]
            if other != own:
                small, large = sorted((own, other), key=lambda one: len(groups[one]))
                for member in groups[small]:
                    group_of[member] = large
                groups[large] += groups[small]
                groups[small], own = [], large
    for group in groups:
        chain = [edits[at] for at in sorted(group)]
        if len(chain) > 1 and any(states.get(edit.id) == "applied" for edit in chain):
            yield chain


def _spoken_of(edit: Edit) -> set[str]:
    """The lines of an edit that say something; the words of one that changes parts of lines."""
    both = halves(edit.op)
    if isinstance(edit.op, ReplaceText) and "\n" not in edit.op.old:
        return {word for half in both for word in _WORD.findall(half)}
    return {line.strip() for half in both for line in half.split("\n") if _WORD.search(line)}


def taken_back(text: Text, chain: Sequence[Edit], rungs: Sequence[str]) -> bytes | None:
    """The text without what the edits write, taken back in this order; None where one of them has
    no one place."""
    for edit in chain:
        match edit.op:
            case Replace(old, new) | PatchHunk(old, new) if old and new:
                back: Replace | ReplaceText = Replace(new, old)
            case ReplaceText(old, new, 1) if old and new:
                back = ReplaceText(new, old)
            case Occurrences(at=None) | InContext(every=False):
                old, new = halves(edit.op)
                back = ReplaceText(new, old)
            case _:
                return None
        found = match(text, back, Hints(rungs, edit.path, asked=False))
        if not isinstance(found, Found):
            return None
        text = Text(replaced(text.whole, found.hunks, 0, len(text.whole)))
    return text.data
