"""Lines that open, divide and close a SEARCH/REPLACE block.

Markers have 5 to 9 characters, and those of one block the same number.  Markers of another length
are text, so that a file which holds marker lines itself can be edited; so are those in a fence
inside the block's own, longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.fences import (
    BEGIN_PATCH,
    fence,
)

_OPEN = re.compile(r"(<{5,9}) ?(SEARCH|ORIGINAL|RENAME|DELETE)[ \t]*>?|(-{5,9}) ?(SEARCH)[ \t]*>?")
_CLOSE = re.compile(r"(>{5,9}) ?(REPLACE|UPDATED|RENAME|DELETE)|(\+{5,9}) ?(REPLACE)")
_DIVIDER = re.compile(r"={5,9}")
_WORDS = r"(?:SEARCH|ORIGINAL|REPLACE|UPDATED|RENAME|DELETE)"
_SUSPECT = re.compile(
    r"(?:\s|[\u200b-\u200d\ufeff]|[*+•|-]\s|>+\s|[│┃▏▌]|[#/;%]+\s|\*\*|__|\d+[.)]\s)*(?:"
    rf"(?:<{{5,}}|>{{5,}})\s*(?i:{_WORDS})\b"
    rf"|(?:<{{3,}}|>{{3,}})[ \t]?{_WORDS}[ \t>]*\r?$"
    r"|(?:-{5,}|\+{5,})[ \t]*(?i:SEARCH|REPLACE)[ \t>]*\r?$"
    r"|(?:<{5,9}|>{5,9})\s*$)"
)
_CUT = re.compile(r"(?:<{3,9} ?([A-Z]*)|-{5,9} ?([A-Z]+))")
_BEGUN = re.compile(r"<+|-+|`+|~+")
_OPENING_WORDS = ("SEARCH", "ORIGINAL", "RENAME", "DELETE")
_ENDS = {
    "SEARCH": ("REPLACE", "UPDATED"),
    "ORIGINAL": ("UPDATED", "REPLACE"),
    "RENAME": ("RENAME",),
    "DELETE": ("DELETE",),
}
_PAIRS = {"<": ">", "-": "+"}
_OPENERS = frozenset(5 * kind for kind in _PAIRS)
_CLOSERS = frozenset(5 * kind for kind in _PAIRS.values())
_DIVIDES = 5 * "="
_MARKER_HEADS = _OPENERS | _CLOSERS | {_DIVIDES}
_SHORT = 40
_BLANKS = " \t\r"


class BlockMarker(Struct, frozen=True):
    """A marker line of a block.

    It is a sign, repeated `length` times, and a word.
    """

    kind: str
    length: int
    word: str

    @property
    def closing(self) -> str:
        """The marker that ends this one's block."""
        return f"{_PAIRS[self.kind] * self.length} {_ENDS[self.word][0]}"


class Block(Struct, frozen=True):
    """Line indices of a block's outer markers, and the lines between."""

    start: int
    end: int
    word: str
    old: list[str]
    new: list[str]
    # Refuses the block unless its file is code: a second divider is right before the end.
    unless_code: UnreadableEdit | None = None

    @property
    def creates(self) -> bool:
        return self.word == "SEARCH" and not self.old


def opening(line: str) -> BlockMarker | None:
    """Return the line as the marker that opens a block, or None."""
    return _marker(_OPEN, line) if line[:5] in _OPENERS else None


def may_mark(text: str) -> bool:
    """Return whether a text may hold a marker or the beginning of a patch."""
    angles = ("<" in text and "<<<" in text) or (">" in text and ">>>" in text)
    return angles or "-----" in text or "+++++" in text or BEGIN_PATCH in text


def is_suspect(line: str) -> bool:
    """Return whether a line outside a block resembles a marker too much for prose."""
    signs = "<<<" in line or ">>>" in line or "-----" in line or "+++++" in line
    return signs and _SUSPECT.match(line) is not None


def is_marker(line: str) -> bool:
    """Return whether the line looks like a marker of blocks, or begins a patch."""
    return is_suspect(line) or line.lstrip().startswith(BEGIN_PATCH)


def is_cut(line: str, headed: bool) -> bool:
    """Return whether a response's last line is a cut-off opening marker or fence.

    Under a line with a path (`headed`) any of their first characters is enough.
    """
    line = line.rstrip(_BLANKS)
    if line in ("`", "``") or (headed and _BEGUN.fullmatch(line)):
        return True
    match = _CUT.fullmatch(line)
    begun = (match[1] or match[2] or "") if match else None
    return begun is not None and any(word.startswith(begun) for word in _OPENING_WORDS)


def block_at(
    lines: list[str], start: int, marker: BlockMarker, inside: Iterable[range] = ()
) -> Block:
    """Return the block that opens with `marker` on line `start` (an index).

    Markers in the lines `inside`, of inner fences, may be text.  Raises `UnreadableEdit`, also if
    the block can be read both ways.
    """
    quoting: Block | None = None
    if inside:
        with suppress(UnreadableEdit):
            quoting = _block(lines, start, marker, inside)
    try:
        plain = _block(lines, start, marker, ())
    except UnreadableEdit:
        if quoting is None:
            raise
        return quoting
    if quoting and (quoting.end, quoting.old) != (plain.end, plain.old):
        raise UnreadableEdit(
            start,
            "the block can be read in two ways, with the markers in its inner fence as markers or "
            "as text",
            "give the block's three markers a length (5 to 9) that its text does not have",
        )
    return plain


def _block(lines: list[str], start: int, marker: BlockMarker, inside: Iterable[range]) -> Block:
    dividers: list[int] = []
    fences, quoted = iter(inside), range(0)
    for i in range(start + 1, len(lines)):
        line = lines[i]
        head = line[:5]
        if head not in _MARKER_HEADS:
            continue
        while quoted.stop <= i:
            quoted = next(fences, range(len(lines), len(lines) + 1))
        if i in quoted:
            continue
        if head == _DIVIDES and _DIVIDER.fullmatch(line.rstrip(_BLANKS)):
            dividers.append(i)
        elif (found := opening(line)) and (found.kind, found.length) == (
            marker.kind,
            marker.length,
        ):
            raise UnreadableEdit(
                i,
                f"a block opens before the one of line {start + 1} is closed; expected "
                f"`{marker.closing}`",
                "close every block; where the lines themselves hold markers, give the block's "
                "three markers another length (5 to 9)",
            )
        elif ends_block(line, marker):
            return _divided(lines, start, i, marker, dividers, loose=not inside)
    raise UnreadableEdit.cut(
        start,
        "the block that opens here is not closed before the response ends; expected "
        f"`{marker.closing}`",
    )


def _divided(
    lines: list[str],
    start: int,
    end: int,
    marker: BlockMarker,
    dividers: list[int],
    *,
    loose: bool,
) -> Block:
    if marker.word in ("RENAME", "DELETE"):
        return Block(start, end, marker.word, lines[start + 1 : end], [])
    same = [i for i in dividers if len(lines[i].rstrip(_BLANKS)) == marker.length]
    dividers, last, flaw = same or dividers if loose else same, end, None
    if len(dividers) != 1:
        line = "=" * marker.length
        flaw = UnreadableEdit(
            dividers[1] if dividers else start,
            f"expected exactly one divider of {marker.length} `=` in the block of line "
            f"{start + 1}, found {len(dividers)}",
            f"put one line `{line}` between the old and the new lines; where the lines themselves "
            "hold such a run, give the block's three markers another length (5 to 9)",
        )
        last = end - 1
        if dividers[1:] != [last]:
            raise flaw
    old, new = lines[start + 1 : dividers[0]], lines[dividers[0] + 1 : last]
    return Block(start, end, "SEARCH", old, new, flaw)


def ends_block(line: str, marker: BlockMarker) -> bool:
    """Return whether the line is the closing marker for an opening one."""
    found = _marker(_CLOSE, line) if line[:5] in _CLOSERS else None
    if found is None or found.word not in _ENDS[marker.word]:
        return False
    return (found.kind, found.length) == (_PAIRS[marker.kind], marker.length)


def _marker(pattern: re.Pattern[str], line: str) -> BlockMarker | None:
    return (_recent if len(line) < _SHORT else _read)(pattern, line)


def _read(pattern: re.Pattern[str], line: str) -> BlockMarker | None:
    match = pattern.fullmatch(line.rstrip(_BLANKS))
    if match is None:
        return None
    signs, word = (match[1], match[2]) if match[1] else (match[3], match[4])
    return BlockMarker(signs[0], len(signs), word)


_recent = lru_cache(64)(_read)  # a text has few different markers, and many of each


# ---------------------------------------------------------------- prefixes of lines

_BULLET = r"[-*+•](?=[ \t])|\d{1,3}[.)](?=[ \t])"
_MARKER = r"<{5,9} ?[A-Z]|-{5,9} ?SEARCH"
_CARRIED = re.compile(
    rf"((?:[ \t]*(?:>(?!>)|{_BULLET}))*[ \t]*)(?=`{{3}}|~{{3}}|{_MARKER})"
    rf"|([ \t]*(?:\#+|//+|;+|%+|\||--)[ \t]+)(?={_MARKER})"
)
_ITEM = re.compile(rf"(?:{_BULLET})")


def prefix_of(line: str) -> str | None:
    """Return the prefix before a fence or block that begins on the line."""
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
        """Remove the prefix from all lines of the fence or block at line `start`.

        Nothing changes if its end is not found.
        """
        lines = self._doc.lines
        found = [lines[start][len(prefix) :]]
        below = lines[start + 1] if start + 1 < len(lines) else ""
        blank = _ITEM.sub(lambda item: " " * len(item[0]), prefix)
        carried = prefix if below.startswith(prefix) else blank
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
