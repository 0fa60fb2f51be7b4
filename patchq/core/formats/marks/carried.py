"""Prefixes of the lines of a block or a fence: in a list, a quotation, or a comment.

    1. In `src/a.py`:          > src/a.py
       ```python               > <<<<<<< SEARCH
       <<<<<<< SEARCH          > old
       …                       > …

The prefix is no part of the edit.  A bullet or a number is on the first line alone, and blanks of
its width are on the others.  Where one of the lines lacks the prefix, all of them keep it.
"""

from __future__ import annotations

import re

from patchq.core.formats.format import Document
from patchq.core.formats.marks.blocks import ends_block, opening
from patchq.core.formats.marks.fences import fence

_BULLET = r"[-*+•](?=[ \t])|\d{1,3}[.)](?=[ \t])"
_MARKER = r"<{5,9} ?[A-Z]|-{5,9} ?SEARCH"
_CARRIED = re.compile(
    rf"((?:[ \t]*(?:>(?!>)|{_BULLET}))*[ \t]*)(?=`{{3}}|~{{3}}|{_MARKER})"
    rf"|([ \t]*(?:\#+|//+|;+|%+|\||--)[ \t]+)(?={_MARKER})"
)
_ITEM = re.compile(rf"(?:{_BULLET})")


def prefix_of(line: str) -> str | None:
    """Return the prefix of the fence, or of the block, that begins on a line; None if none does."""
    may = "```" in line or "~~~" in line or "<<<<<" in line or "-----" in line
    match = _CARRIED.match(line) if may else None
    return match and (match[1] or match[2] or None)


class CarriedLines:
    """Takes prefixes off the lines of one text."""

    def __init__(self, doc: Document) -> None:
        self._doc = doc
        # The line up to which the end of a beginning behind a prefix was sought in vain.
        self._vain: dict[tuple[str, object], int] = {}

    def take_off(self, start: int, prefix: str) -> None:
        """Take the prefix off all lines of the fence or block that begins on line `start`."""
        lines = self._doc.lines
        found = [lines[start][len(prefix) :]]
        below = lines[start + 1] if start + 1 < len(lines) else ""
        carried = prefix if below.startswith(prefix) else _ITEM.sub(_blanks, prefix)
        marker, mark = opening(found[0]), fence(found[0])
        key = carried, marker or (mark and (mark.kind, mark.length))
        i = max(start, self._vain.get(key, 0)) if marker or mark else len(lines)
        if i > start:
            return
        while (i := i + 1) < len(lines):
            line = lines[i]
            if not line.startswith(carried) and line.strip() and line.rstrip() != carried.rstrip():
                break
            found.append(line[len(carried) :])
            other = mark and fence(found[-1])
            if (marker and ends_block(found[-1], marker)) or (
                mark and other and mark.closed_by(other)
            ):
                lines[start : start + len(found)] = found
                self._doc.fences.look_again(start, start + len(found))
                return
        self._vain[key] = i


def _blanks(item: re.Match[str]) -> str:
    return " " * len(item[0])
