"""The difference of two texts by git's own algorithm, so that what is called touched here is what
git's merge takes for touched."""

from __future__ import annotations

import pygit2
from pygit2.enums import DiffOption

from patchq.model.values import LineHunk


def line_hunks(old: bytes, new: bytes) -> list[LineHunk]:
    """The changed runs of lines, in order: (first, end) of `old`, then of `new`, 0-based and
    half-open."""
    flags = DiffOption.FORCE_TEXT | DiffOption.INDENT_HEURISTIC
    patch = pygit2.Patch.create_from(old, new, context_lines=0, flag=flags)
    return [
        (*_range(hunk.old_start, hunk.old_lines), *_range(hunk.new_start, hunk.new_lines))
        for hunk in patch.hunks
    ]


def _range(start: int, count: int) -> tuple[int, int]:
    """Lines as slices count them; git names the line before an empty range."""
    first = start - 1 if count else start
    return first, first + count
