"""Lines that all carry the same prefix: an edit in a list, behind the `>` of a quotation, or behind
the sign of a comment.

    1. In `src/a.py`:          > src/a.py
       ```python               > <<<<<<< SEARCH
       <<<<<<< SEARCH          > old
       …                       > …

The prefix is no part of the edit.  A bullet or a number stands on the first line alone, and blanks
of its width on the others.  Where one line between the first and the last of what begins so lacks
the prefix, the lines stand as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from patchq.core.formats.format import Document
from patchq.core.formats.marks.blocks import ends_block, opening
from patchq.core.formats.marks.fences import fence
from patchq.core.formats.marks.lines import BEGIN_PATCH, GIT

_BULLET = r"[-*+•](?=[ \t])|\d{1,3}[.)](?=[ \t])"
_QUOTED = rf"(?:[ \t]*(?:>(?!>)|{_BULLET}))*[ \t]*"
_COMMENT = r"[ \t]*(?:\#+|//+|;+|%+|\||--)[ \t]+"
_MARKER = rf"<{{5,9}} ?[A-Z]|-{{5,9}} ?SEARCH|{re.escape(BEGIN_PATCH)}"
_CARRIED = re.compile(
    rf"(?P<prefix>{_QUOTED})(?=`{{3}}|~{{3}}|{_MARKER}|{GIT}|--- \S|FILE:|FIND:|\*\*FIND)"
    rf"|(?P<comment>{_COMMENT})(?=(?:{_MARKER}))"
    rf"|(?P<json>[ \t]*>{_QUOTED})(?=\{{|\[\s*(?:\{{|$))"
)
_KIND = re.compile(r"[^`~<*-].*", re.DOTALL)
"""What of a beginning does not matter to how it ends."""
_ITEM = re.compile(rf"(?:{_BULLET})")


def prefix_of(line: str) -> str | None:
    """What stands before the beginning of an edit, or of a fence, on a line; None if nothing, or
    nothing such, does."""
    match = _CARRIED.match(line) if _may_carry(line) else None
    return (match[match.lastgroup or 0] or None) if match else None


def _may_carry(line: str) -> bool:
    """Whether a beginning behind a prefix may stand on a line, as prose has none."""
    fences = "```" in line or "~~~" in line
    markers = "<<<<<" in line or "--- " in line or "-----" in line or BEGIN_PATCH in line
    names = "FILE:" in line or "FIND" in line or GIT in line
    return fences or markers or names or (">" in line and ("{" in line or "[" in line))


class CarriedLines:
    """Takes the prefix off lines of one text."""

    def __init__(self, doc: Document) -> None:
        self._doc = doc
        self._vain: dict[tuple[str, str], int] = {}
        """For a prefix and what begins behind it, the line up to which its end was sought in
        vain."""

    def take_off(self, start: int, prefix: str) -> bool:
        """Take the prefix off all lines of what begins behind it on line `start` (an index); False
        if they do not all carry it, and then they stay as they are."""
        lines = self._doc.lines
        first = lines[start][len(prefix) :]
        below = lines[start + 1] if start + 1 < len(lines) else ""
        carried = prefix if below.startswith(prefix) else _blanked(prefix)
        if first.startswith("--- ") and not below.startswith(carried + "+++ "):
            return False
        key = carried, _KIND.sub("", first)
        if start < self._vain.get(key, 0):
            return False
        found, ends, i = [first], _end_of(first), start
        while (i := i + 1) < len(lines):
            line = lines[i]
            if line.startswith(carried):
                found.append(line[len(carried) :])
            elif not line.strip() or line.rstrip() == carried.rstrip():
                found.append("")
            else:
                break
            if ends is not None and ends(found[-1]):
                ends = None
                break
        if ends is not None:
            self._vain[key] = i
            return False
        lines[start : start + len(found)] = found
        self._doc.fences.look_again(start, start + len(found))
        return True


def _blanked(prefix: str) -> str:
    """What the lines under a list's item carry."""
    return _ITEM.sub(lambda item: " " * len(item[0]), prefix)


def _end_of(first: str) -> Callable[[str], bool] | None:
    """What tells the last line of what begins with `first`; None where only the prefix does."""
    if marker := opening(first):
        return lambda line: ends_block(line, marker)
    if mark := fence(first):
        return lambda line: (other := fence(line)) is not None and mark.closed_by(other)
    if first.startswith(BEGIN_PATCH):
        return lambda line: line.startswith("*** End Patch")
    return None
