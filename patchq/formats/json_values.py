"""Where JSON stands in a response's text: in a fence, or bare from a line's start.

A value is read as far as it goes, not as far as its fence does: models put raw line ends into
strings, and fence lines with them.  It is read from a few lines first and from more only when it
needs them, so that no text costs more than its length, wherever the attempts begin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq import jsonish
from patchq.formats.fences import Fence, fence
from patchq.jsonish import JsonError, Node

_FIRST_LINES = 4
_WORD_TO_END = re.compile(r"[\w.+/-]*\s*\Z")
_FENCE_END = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class Value:
    """One value, with the index of the line that its own line 1 is, and where it ends."""

    node: Node
    start: int
    end: int
    """The index of its last line."""
    column: int
    """Where in its last line the text behind it begins."""


@dataclass(frozen=True, slots=True)
class Broken:
    """No value: what was wrong, on which line (index) and column (from 1)."""

    index: int
    column: int
    message: str
    cut: bool
    """Whether the text ends inside of the value."""
    sync: int
    """Before this line (index) no other value begins: all that stands there was read as JSON."""


@dataclass(frozen=True, slots=True)
class Run:
    """Values one behind the other, with blank lines and commas between them at most."""

    values: tuple[Value, ...]
    end: int
    """The index of the first line behind the run, and behind its fence."""
    behind: int | None = None
    """The index of the first line of text that stands between the values and their fence's end, or
    that goes on with the last value."""


def begins(line: str) -> bool:
    """Whether a line begins with what may be an object or a list."""
    return line.lstrip()[:1] in ("{", "[")


def value_at(lines: Sequence[str], index: int) -> Value | Broken:
    """The value that begins on line `index`."""
    count = _FIRST_LINES
    while True:
        text = "\n".join(lines[index : index + count])
        whole = index + count >= len(lines)
        try:
            node, end = jsonish.parse_at(text, 0)
        except JsonError as error:
            if error.cut and not whole:
                count *= 4
                continue
            return _broken(text, index, error, whole)
        last = text.count("\n", 0, end)
        return Value(node, index, index + last, end - (text.rfind("\n", 0, end) + 1))


def _broken(text: str, index: int, error: JsonError, whole: bool) -> Broken:
    """An error with its place in the response."""
    position = error.position
    cut = whole and (error.cut or _WORD_TO_END.match(text, position) is not None)
    # The last string may hide where another value begins; nothing before its first quote does.
    closing = text.rfind('"', 0, position)
    opening = text.rfind('"', 0, closing) if closing > 0 else -1
    sync = text.count("\n", 0, position if closing < 0 else max(opening, 0))
    return Broken(index + error.line - 1, error.column, str(error), cut, index + sync)


def bare_run(lines: Sequence[str], index: int) -> Run | Broken:
    """The values that stand without a fence from line `index` on."""
    values = _values(lines, index)
    if isinstance(values, Broken):
        return values
    last = values[-1]
    behind: int | None = None
    if lines[last.end][last.column :].strip():
        behind = last.end
    elif (following := next_text(lines, last.end + 1)) is not None and _goes_on(lines[following]):
        behind = following
    return Run(values, last.end + 1, behind)


def _goes_on(line: str) -> bool:
    """Whether a line only makes sense behind a value that is part of another one."""
    return line.strip()[:1] in (",", "]", "}")


def fenced_run(lines: Sequence[str], index: int, mark: Fence) -> Run | Broken | None:
    """The values in the fence that `mark` opens on line `index`; None if it begins with something
    else."""
    first = next_text(lines, index + 1)
    if first is None or not begins(lines[first]):
        return None
    values = _values(lines, first)
    if isinstance(values, Broken):
        return values
    last = values[-1]
    rest = lines[last.end][last.column :].strip()
    if _FENCE_END.fullmatch(rest):
        return Run(values, last.end + 1)
    text = last.end if rest not in ("", ",") else None
    for i in range(last.end + 1, len(lines)):
        if (found := fence(lines[i])) is not None:
            if not mark.closed_by(found):
                break
            return Run(values, i + 1, text)
        if text is None and lines[i].strip():
            text = i
    # The fence's end is missing: what stands behind the values is prose.
    return Run(values, last.end + 1, last.end if rest else None)


def _values(lines: Sequence[str], index: int) -> tuple[Value, ...] | Broken:
    """The value of line `index`, and those that follow it."""
    first = value_at(lines, index)
    if isinstance(first, Broken):
        return first
    values = [first]
    while True:
        last = values[-1]
        rest = lines[last.end][last.column :].strip()
        following = next_text(lines, last.end + 1)
        if rest not in ("", ",") or following is None or not begins(lines[following]):
            return tuple(values)
        value = value_at(lines, following)
        if isinstance(value, Broken) or not isinstance(value.node.value, dict | list):
            return tuple(values)
        values.append(value)


def next_text(lines: Sequence[str], index: int) -> int | None:
    """The index of the first line from `index` on that is not blank."""
    for i in range(index, len(lines)):
        if lines[i].strip():
            return i
    return None
