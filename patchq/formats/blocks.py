"""Where a SEARCH/REPLACE block begins, divides and ends.

Markers have 5 to 9 characters, and those of one block the same number.  Lines of another length are
text, so that a file which holds marker lines itself can be edited; where two readings remain, the
block is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.formats.fences import Fence, fence
from patchq.model import Problem

_OPEN = re.compile(
    r"^(?:(<{5,9}) ?(SEARCH|ORIGINAL|RENAME|DELETE)|(-{5,9}) ?(SEARCH))[ \t]*>?[ \t\r]*$"
)
_CLOSE = re.compile(r"^(?:(>{5,9}) ?(REPLACE|UPDATED|RENAME|DELETE)|(\+{5,9}) ?(REPLACE))[ \t\r]*$")
_DIVIDER = re.compile(r"^(={5,9})[ \t\r]*$")
_SUSPECT = re.compile(
    r"^\s*(?:<{3,}\s*(?:SEARCH|ORIGINAL|RENAME|DELETE)\b|>{3,}\s*(?:REPLACE|UPDATED|RENAME|DELETE)\b"
    r"|-{5,} ?SEARCH\b|\+{5,} ?REPLACE\b|[<>]{5,9}\s*$)"
)
_ENDS = {"SEARCH": "REPLACE", "ORIGINAL": "UPDATED", "RENAME": "RENAME", "DELETE": "DELETE"}


@dataclass(frozen=True, slots=True)
class Marker:
    length: int
    word: str


@dataclass(frozen=True, slots=True)
class Block:
    """Line indices of a block's markers, and what it says."""

    start: int
    end: int
    word: str
    old: list[str]
    new: list[str]


class Unreadable(Exception):
    def __init__(self, index: int, message: str, hint: str, code: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code or "response.unreadable_edit", message, hint, line=index + 1)


def opening(line: str) -> Marker | None:
    """The line as the marker that opens a block, or None."""
    return _marker(_OPEN, line)


def is_suspect(line: str) -> bool:
    """Whether a line outside a block looks like a marker, so that reading it as prose would lose
    an edit."""
    return bool(_SUSPECT.match(line))


def block_at(lines: Sequence[str], start: int, marker: Marker, inside: Fence | None) -> Block:
    """The block that opens on line `start` (an index), in the fence `inside`; raises `Unreadable`.

    In a fence of four or more characters, what stands in shorter fences is text.
    """
    try:
        return _delimited(lines, start, marker, frozenset())
    except Unreadable:
        if inside is None or inside.length < 4:
            raise
        return _delimited(lines, start, marker, _quoted(lines, start, inside))


def _quoted(lines: Sequence[str], start: int, outer: Fence) -> frozenset[int]:
    """The lines that stand in shorter fences inside the block's own: text, not markers."""
    quoted: set[int] = set()
    inner: Fence | None = None
    for i in range(start + 1, len(lines)):
        mark = fence(lines[i])
        if mark is not None and outer.closed_by(mark):
            break
        if inner is not None:
            quoted.add(i)
            if mark is not None and inner.closed_by(mark):
                inner = None
        elif mark is not None and mark.length < outer.length:
            inner = mark
    return frozenset(quoted)


def _delimited(lines: Sequence[str], start: int, marker: Marker, text: frozenset[int]) -> Block:
    limit = next(
        (
            i
            for i in range(start + 1, len(lines))
            if i not in text and (m := _marker(_OPEN, lines[i])) and m.length == marker.length
        ),
        len(lines),
    )
    end = _closing(lines, start, limit, marker, text)
    body = range(start + 1, end)
    if marker.word in ("RENAME", "DELETE"):
        return Block(start, end, marker.word, [lines[i] for i in body], [])
    dividers = [i for i in body if i not in text and _DIVIDER.match(lines[i])]
    same = [i for i in dividers if len(lines[i].strip()) == marker.length]
    chosen = same or dividers
    if len(chosen) != 1:
        raise Unreadable(
            chosen[1] if chosen else start,
            f"line {(chosen[1] if chosen else start) + 1}, column 1: expected exactly one "
            f"divider of {marker.length} `=` in the block of line {start + 1}, found "
            f"{len(chosen)}",
            "where the lines themselves hold such a run, give the block's three markers "
            "another length (5 to 9)",
        )
    old, new = lines[start + 1 : chosen[0]], lines[chosen[0] + 1 : end]
    return Block(start, end, "SEARCH", old, new)


def _closing(
    lines: Sequence[str], start: int, limit: int, marker: Marker, text: frozenset[int]
) -> int:
    closers = [
        (i, m)
        for i in range(start + 1, limit)
        if i not in text and (m := _marker(_CLOSE, lines[i]))
    ]
    same = [i for i, m in closers if m.length == marker.length]
    wanted = _ENDS[marker.word]
    if not same and len(closers) == 1:
        same = [closers[0][0]]
    if same and (marker.word in ("SEARCH", "ORIGINAL")) == (
        _marker_word(lines[same[0]]) in ("REPLACE", "UPDATED")
    ):
        return same[0]
    if limit == len(lines):
        raise Unreadable(
            start,
            f"line {start + 1}, column 1: the block that opens here is not closed before the "
            f"response ends; expected `{'>' * marker.length} {wanted}`",
            "send the whole response again; if it was cut, send fewer changes at once",
            "response.truncated",
        )
    raise Unreadable(
        limit,
        f"line {limit + 1}, column 1: a block opens before the one of line {start + 1} is "
        f"closed; expected `{'>' * marker.length} {wanted}`",
        "close every block; where the lines themselves hold markers, give the block's markers "
        "another length (5 to 9)",
    )


def _marker(pattern: re.Pattern[str], line: str) -> Marker | None:
    match = pattern.match(line)
    return Marker(len(match[1] or match[3]), match[2] or match[4]) if match else None


def _marker_word(line: str) -> str | None:
    marker = _marker(_CLOSE, line)
    return marker.word if marker else None
