"""Where a diff's hunk ends, which its counts may or may not say.

Models miscount, so the counts are hints: they are believed only if they lead to a place where a
hunk can end.  Otherwise the hunk goes on as long as its lines begin with a space, `+`, `-` or are
blank.

A removed `-- x` and an added `++ y` look like the next file's header.  They are one if both name
the same file; else they are lines of the hunk where the counts hold, and a header where `@@`
follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.formats.marks.lines import Signed, is_blank
from patchq.formats.marks.paths import Known
from patchq.formats.unified_diff.headers import HUNK, is_pair, names_one_file

_NUMBERS = re.compile(r"[ \t]*-(\d{1,9})(?:,(\d{1,9}))?[ \t]+\+(\d{1,9})(?:,(\d{1,9}))?(?=\D|\Z)")
_NO_NEWLINE = re.compile(r"\\ ?No newline at end of file\s*|\\ .{10,}", re.IGNORECASE | re.DOTALL)
_VERSION = re.compile(r"\d+(?:\.\w+)+.*", re.DOTALL)
_LISTED = re.compile(r"[-+*] +\S|-{3,}\s*\Z")
_FENCE = re.compile(r"(?:`{3}|~{3})")


@dataclass(frozen=True, slots=True)
class HunkNumbers:
    """A hunk header's numbers."""

    start: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class HunkBody:
    """A hunk's lines, and the index behind them; `exact` says that its counts hold."""

    lines: tuple[Signed, ...]
    end: int
    exact: bool
    old_ends: bool
    """Whether the last old line ends in a newline; `new_ends` says it of the last new line."""
    new_ends: bool


def numbers_of(line: str) -> HunkNumbers | None:
    """The numbers of a hunk header, if it has some."""
    match = _NUMBERS.match(line, 2)
    if match is None:
        return None
    return HunkNumbers(int(match[1]), int(match[2] or 1), int(match[4] or 1))


def sign_of(line: str) -> str | None:
    """A body line's sign; a blank line is context, and `\\` says that the line above has no end."""
    if line[:1] in ("+", "-", " ") or not line.strip():
        return line[:1] if line[:1] in ("+", "-") else " "
    return "\\" if line[0] == "\\" and _NO_NEWLINE.fullmatch(line) else None


def is_fence(line: str) -> bool:
    """Whether the line opens or closes a fence; behind a sign it is a line like any other."""
    return _FENCE.match(line) is not None


def is_signature(lines: Sequence[str], i: int) -> bool:
    """Whether a mail ends on line `i`: `-- `, and git's version below it."""
    below = lines[i + 1] if i + 1 < len(lines) else ""
    return lines[i].rstrip() == "--" and _VERSION.fullmatch(below) is not None


def body_at(
    lines: Sequence[str], start: int, numbers: HunkNumbers | None, known: Known, *, fenced: bool
) -> HunkBody:
    """The body that begins on line `start`; `fenced` says that no prose can follow in `lines`."""
    if numbers is not None:
        # Behind the text's last newline stands no line.
        limit = len(lines) - (not fenced and lines[-1] == "")
        end = _counted(lines, start, limit, numbers, known)
        if end is not None and _can_end(lines, end, known, fenced):
            return _body(lines, start, end, end, exact=True)
    end = start
    while end < len(lines) and sign_of(lines[end]):
        # No hunk is empty: a pair on its first lines is a header only if it names a file.
        begins = _next_begins if end > start else names_one_file
        if begins(lines, end, known):
            break
        end += 1
    last = end
    if end == len(lines) or not HUNK.match(lines[end]):
        while last > start and is_blank(lines[last - 1]):
            last -= 1
    return _body(lines, start, last, end if fenced else last, exact=False)


def _counted(
    lines: Sequence[str], start: int, limit: int, numbers: HunkNumbers, known: Known
) -> int | None:
    """Where the counts end the hunk, before line `limit`; None if they are wrong."""
    old, new, i = numbers.old, numbers.new, start
    while old or new:
        sign = sign_of(lines[i]) if i < limit else None
        if sign is None or names_one_file(lines, i, known):
            return None
        old -= sign in " -"
        new -= sign in " +"
        i += 1
        if min(old, new) < 0:
            return None
    while i < len(lines) and sign_of(lines[i]) == "\\":
        i += 1
    return i if i > start else None


def _can_end(lines: Sequence[str], i: int, known: Known, fenced: bool) -> bool:
    """Whether a hunk can end before line `i`."""
    first = i
    while i < len(lines) and is_blank(lines[i]):
        i += 1
    if i == len(lines) or sign_of(lines[i]) is None or _next_begins(lines, i, known):
        return True
    return i > first and not fenced and _LISTED.match(lines[i]) is not None


def _next_begins(lines: Sequence[str], i: int, known: Known) -> bool:
    """Whether the next file's header, or a mail's end, begins on line `i`."""
    if is_signature(lines, i):
        return True
    if not is_pair(lines, i):
        return False
    headed = i + 2 < len(lines) and HUNK.match(lines[i + 2]) is not None
    return headed or names_one_file(lines, i, known)


def _body(lines: Sequence[str], start: int, last: int, end: int, *, exact: bool) -> HunkBody:
    signed: list[Signed] = []
    ends = {"-": True, "+": True}
    for line in lines[start:last]:
        sign = sign_of(line)
        if sign == "\\":
            above = signed[-1][0] if signed else " "
            ends.update((s, False) for s in ("-", "+") if above in (s, " "))
        else:
            signed.append((sign or " ", line[1:] if line[:1] in ("+", "-", " ") else line))
    return HunkBody(tuple(signed), end, exact, ends["-"], ends["+"])
