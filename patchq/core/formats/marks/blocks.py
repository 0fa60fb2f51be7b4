"""Where a SEARCH/REPLACE block begins, divides and ends.

Markers have 5 to 9 characters, and those of one block the same number.  Markers of another length
are text, so that a file which holds marker lines itself can be edited; so is what stands in a fence
inside the block's own, longer one.  Where two readings remain, the block is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import UnreadableEdit
from patchq.core.formats.marks.lines import BEGIN_PATCH

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
_STARTS = re.compile(r":(?:start|end)_line:[ \t]*\d+[ \t\r]*")
_RULE = re.compile(r"-{5,9}[ \t\r]*")
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
MARKER_HEADS = _OPENERS | _CLOSERS | {_DIVIDES}
"""How the markers begin."""
_SHORT = 40
_BLANKS = " \t\r"

FenceSkip = Callable[[int], int | None]
"""For a line index where a fence inside the block's fence opens: the index where it ends."""


class BlockMarker(Struct, frozen=True):
    """A marker line of a block: the sign that it repeats, how often, and its word."""

    kind: str
    length: int
    word: str

    @property
    def opening(self) -> str:
        """This marker, with nothing beside it."""
        return f"{self.kind * self.length} {self.word}"

    @property
    def divider(self) -> str:
        """The line between the two halves of its block."""
        return "=" * self.length

    @property
    def closing(self) -> str:
        """The marker that ends this one's block."""
        return f"{_PAIRS[self.kind] * self.length} {_ENDS[self.word][0]}"


class Block(Struct, frozen=True):
    """Line indices of a block's markers, and what stands between them."""

    start: int
    end: int
    word: str
    old: list[str]
    new: list[str]
    spare: int | None = None
    """A second divider right before the end, which is none of the lines: noise where the file is
    code."""

    @property
    def creates(self) -> bool:
        return self.word == "SEARCH" and not self.old


def opening(line: str) -> BlockMarker | None:
    """The line as the marker that opens a block, or None."""
    return _marker(_OPEN, line) if line[:5] in _OPENERS else None


def ends_block(line: str, marker: BlockMarker) -> bool:
    """Whether the line is the marker that closes the block of an opening one."""
    found = _marker(_CLOSE, line) if line[:5] in _CLOSERS else None
    ends = found is not None and (found.kind, found.length) == (_PAIRS[marker.kind], marker.length)
    return ends and found is not None and found.word in _ENDS[marker.word]


def may_mark(text: str) -> bool:
    """Whether a marker, or what looks like one, or a patch's beginning, may stand in a text."""
    angles = ("<" in text and "<<<" in text) or (">" in text and ">>>" in text)
    return angles or "-----" in text or "+++++" in text or BEGIN_PATCH in text


def is_suspect(line: str) -> bool:
    """Whether a line outside a block looks like a marker, so that reading it as prose would lose
    an edit."""
    signs = "<<<" in line or ">>>" in line or "-----" in line or "+++++" in line
    return signs and _SUSPECT.match(line) is not None


def is_cut(line: str, headed: bool) -> bool:
    """Whether a response's last line is the beginning of an opening marker or of a fence.

    Under a line with a path (`headed`) any of their first characters tells.
    """
    line = line.rstrip(_BLANKS)
    if line in ("`", "``") or (headed and _BEGUN.fullmatch(line)):
        return True
    match = _CUT.fullmatch(line)
    begun = (match[1] or match[2] or "") if match else None
    return begun is not None and any(word.startswith(begun) for word in _OPENING_WORDS)


def block_at(lines: list[str], start: int, marker: BlockMarker, inner: FenceSkip | None) -> Block:
    """The block that opens with `marker` on line `start` (an index); raises `UnreadableEdit`.

    With `inner`, what stands in inner fences may be text as well as markers; if the block can be
    read both ways, it is unreadable.  Read so, all markers have to have the length of the first.
    """
    plain = _attempt(lines, start, marker, None)
    quoting = _attempt(lines, start, marker, inner) if inner is not None else plain
    if isinstance(plain, UnreadableEdit):
        if isinstance(quoting, UnreadableEdit):
            raise plain
        return quoting
    if isinstance(quoting, Block) and quoting != plain:
        raise UnreadableEdit(
            start,
            "the block can be read in two ways, with the markers in its inner fence as markers or "
            "as text",
            "give the block's three markers a length (5 to 9) that its text does not have",
        )
    return plain


def _attempt(
    lines: list[str], start: int, marker: BlockMarker, inner: FenceSkip | None
) -> Block | UnreadableEdit:
    try:
        return _divided(lines, start, marker, _scan(lines, start, marker, inner))
    except UnreadableEdit as error:
        return error


@dataclass(slots=True)
class _Scan:
    """What was found between a block's opening and its end."""

    strict: bool
    """Whether all markers have to have the opening's length and kind."""
    end: int = -1
    dividers: list[int] = field(default_factory=list)
    closings: list[int] = field(default_factory=list)
    """Closing markers of another length or kind."""
    openings: int = 0
    """How many opening markers there are of another length or kind."""


def _scan(lines: list[str], start: int, marker: BlockMarker, inner: FenceSkip | None) -> _Scan:
    """Read on to the block's closing marker."""
    scan, i, limit = _Scan(inner is not None), start, len(lines)
    while (i := i + 1) < limit:
        if inner is not None and (end := inner(i)) is not None:
            i = end
            continue
        line = lines[i]
        head = line[:5]
        if head not in MARKER_HEADS:
            continue
        if head == _DIVIDES and _DIVIDER.fullmatch(line.rstrip(_BLANKS)):
            scan.dividers.append(i)
        elif found := opening(line):
            if (found.kind, found.length) == (marker.kind, marker.length):
                limit = i
            else:
                scan.openings += 1
        elif head in _CLOSERS and (found := _marker(_CLOSE, line)):
            if (found.kind, found.length) != (_PAIRS[marker.kind], marker.length):
                scan.closings.append(i)
            elif found.word in _ENDS[marker.word]:
                scan.end = i
                return scan
            else:
                raise UnreadableEdit(
                    i,
                    f"expected `{marker.closing}`, which closes the block of line {start + 1}, "
                    f"found `{line.rstrip(_BLANKS)}`",
                    "close a block with the word that belongs to the one it opens with",
                )
    scan.end = _loose_end(lines, start, marker, scan, limit)
    return scan


def _loose_end(lines: list[str], start: int, marker: BlockMarker, scan: _Scan, limit: int) -> int:
    """The block's end if its closing marker has another length or kind: the only one there is."""
    if len(scan.closings) == 1 and not scan.openings and not scan.strict:
        found = _marker(_CLOSE, lines[scan.closings[0]])
        if found is not None and found.word in _ENDS[marker.word]:
            return scan.closings[0]
    if limit < len(lines):
        raise UnreadableEdit(
            limit,
            f"a block opens before the one of line {start + 1} is closed; expected "
            f"`{marker.closing}`",
            "close every block; where the lines themselves hold markers, give the block's three "
            "markers another length (5 to 9)",
        )
    if scan.closings:
        raise UnreadableEdit(
            scan.closings[0],
            f"expected `{marker.closing}`, which closes the block of line {start + 1}, found "
            f"`{lines[scan.closings[0]].rstrip(_BLANKS)}`",
            "give the three markers of a block the same length",
        )
    raise UnreadableEdit.cut(
        start,
        "the block that opens here is not closed before the response ends; expected "
        f"`{marker.closing}`",
    )


def _divided(lines: list[str], start: int, marker: BlockMarker, scan: _Scan) -> Block:
    """The block that ends at `scan.end`, its two halves told apart."""
    if marker.word in ("RENAME", "DELETE"):
        return Block(start, scan.end, marker.word, lines[start + 1 : scan.end], [])
    dividers = [i for i in scan.dividers if i < scan.end]
    same = [i for i in dividers if len(lines[i].rstrip(_BLANKS)) == marker.length]
    if same or scan.strict:
        dividers = same
    spare = dividers[1] if len(dividers) == 2 and dividers[1] == scan.end - 1 else None
    if len(dividers) != 1 and spare is None:
        raise several_dividers(lines, start, dividers)
    old, new = lines[start + 1 : dividers[0]], lines[dividers[0] + 1 : spare or scan.end]
    return Block(start, scan.end, "SEARCH", _unnumbered(old, new), new, spare)


def _unnumbered(old: list[str], new: list[str]) -> list[str]:
    """The old lines without the head that says where they stand (`:start_line:12`, `-------`)."""
    if not old or old[0][:1] != ":":
        return old
    end = next((i for i, line in enumerate(old[:3]) if not _STARTS.fullmatch(line)), 0)
    head = end and _RULE.fullmatch(old[end]) and old[0] not in new[:1]
    return old[end + 1 :] if head else old


def several_dividers(lines: Sequence[str], start: int, dividers: Sequence[int]) -> UnreadableEdit:
    """What refuses the block of line `start` (an index), which has those dividers, or none."""
    marker = opening(lines[start])
    length = marker.length if marker else 0
    return UnreadableEdit(
        dividers[1] if dividers else start,
        f"expected exactly one divider of {length} `=` in the block of line {start + 1}, found "
        f"{len(dividers)}",
        f"put one line `{'=' * length}` between the old and the new lines; where the lines "
        "themselves hold such a run, give the block's three markers another length (5 to 9)",
    )


def _marker(pattern: re.Pattern[str], line: str) -> BlockMarker | None:
    return (_recent if len(line) < _SHORT else _read)(pattern, line)


def _read(pattern: re.Pattern[str], line: str) -> BlockMarker | None:
    match = pattern.fullmatch(line.rstrip(_BLANKS))
    if match is None:
        return None
    signs, word = (match[1], match[2]) if match[1] else (match[3], match[4])
    return BlockMarker(signs[0], len(signs), word)


_recent = lru_cache(64)(_read)
"""A text has few different markers, and many of each."""
