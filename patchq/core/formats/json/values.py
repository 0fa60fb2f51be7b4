"""Where JSON is in a response's text: in a fence, or bare from a line's start.

A value is read as far as it goes, not as far as its fence does: models put raw line ends into
strings, and fence lines with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.fences import Fence, fence
from patchq.core.formats.marks.lines import next_line
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

_KEY = (
    r"(?:(?:old|new)[_-]?(?:string|str|text)|file_?text|insert_?line|contextualEdits|searchPattern)"
)
_QUOTE = r"\\*[\"'\u201c\u201d\u2018\u2019]"
_ANY_KEY = re.compile(
    rf"{_QUOTE}{_KEY}{_QUOTE}\s*:|(?<![\w\"'-]){_KEY}\s*:",
    re.IGNORECASE,
)
_MEMBER = re.compile(rf"\s*{_QUOTE}{_KEY}{_QUOTE}\s*:", re.IGNORECASE)
_EDITS = re.compile(
    rf"(?:{_QUOTE}|\b)edits(?:{_QUOTE})?\s*:\s*\[.*?"
    rf"(?:{_QUOTE}|\b)(?:anchor|target|afterText)(?:{_QUOTE})?\s*:",
    re.IGNORECASE | re.DOTALL,
)
_UNQUOTED_LINES = 20  # so far behind its error an object of JavaScript may name its keys
HINT = "send one JSON object or list in a form that `patchq formats` lists, and nothing else in it"


def is_member(line: str) -> bool:
    """Return whether a line begins with an edit's key."""
    return _MEMBER.match(line) is not None


def speaks_of_edits(text: str) -> bool:
    """Return whether a text that is no JSON holds an edit's key all the same."""
    return ":" in text and bool(_ANY_KEY.search(text) or _EDITS.search(text))


def begins(line: str) -> bool:
    """Return whether a line begins with what may be an object or a list."""
    return line.lstrip()[:1] in ("{", "[")


class JsonNotes:
    """Notes on the JSON in a document; `end` is the line (index) behind what was read."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.end = 0

    @cached_property
    def speak_of_edits(self) -> bool:
        """Return whether an edit's key in JSON is anywhere in the text."""
        return speaks_of_edits("\n".join(self.doc.lines))


class JsonRun(Struct, frozen=True):
    """Values one behind the other, with blank lines and commas between them at most."""

    values: tuple[tuple[int, Node], ...]  # they, with the indices of the lines on which they begin
    end: int  # the index of the first line behind the run, and behind its fence
    # The index of the line with text that goes on with the last value, or ends its fence late.
    behind: int | None


def run_at(doc: Document, start: int, mark: Fence | None) -> JsonRun:
    """Return the values from line `start` on, in the fence that `mark` opens, or bare.

    Raises `JsonError` for a first value that cannot be read.
    """
    lines = doc.lines
    node, last, rest = _value(lines, start)
    values = [(start, node)]
    while rest in ("", ","):
        below = next_line(lines, last)
        if below == len(lines) or not begins(lines[below]):
            break
        try:
            node, last, rest = _value(lines, below)
        except JsonError:
            break
        values.append((below, node))
    end, behind = last + 1, last if rest else None
    tail = fence(rest)
    if mark and tail and mark.closed_by(tail):
        return JsonRun(tuple(values), end, None)
    if mark is None:
        below = next_line(lines, last)
        if behind is None and below < len(lines) and lines[below].strip()[:1] in (",", "]", "}"):
            behind = below
        return JsonRun(tuple(values), end, behind)
    closing, other = next(doc.fences.behind(last), (0, None))
    if other is None or not mark.closed_by(other):  # the fence's end is missing
        return JsonRun(tuple(values), end, behind)
    text = next_line(lines, last)
    behind = behind if rest not in ("", ",") else text if text < closing else None
    return JsonRun(tuple(values), closing + 1, behind)


def _value(lines: Sequence[str], index: int) -> tuple[Node, int, str]:
    """Return the value that begins on a line, the line (index) of its end, and what follows there.

    It is sought in one line first, and in more only if it needs them.
    """
    count = 1
    while True:
        text = "\n".join(lines[index : index + count])
        try:
            node, end = jsonish.parse_at(text, 0)
        except JsonError as error:
            if not error.cut or index + count >= len(lines):
                raise
            count *= 4
            continue
        return node, index + text.count("\n", 0, end), text[end:].partition("\n")[0].strip()


def check_broken(notes: JsonNotes, i: int, start: int, broken: JsonError) -> None:
    """Refuse a value that cannot be read, if it may be an edit, or the response ends in it.

    It begins on line `start`: on line `i`, or in the fence that opens there.
    """
    lines, at = notes.doc.lines, start + broken.line - 1
    # A string may hide where another value begins; brackets alone do not.
    read = i + 1 if any('"' in line for line in lines[start:at]) else at
    notes.end = max(notes.end, i + 1, len(lines) if broken.cut else read)
    if not (broken.cut or notes.speak_of_edits):
        return
    end = at + (at == i or not begins(lines[at]))  # one that begins there is looked at for itself
    limit = min(len(lines), at + _UNQUOTED_LINES)
    while end > at and end < limit and lines[end].strip() and not begins(lines[end]):
        end += 1
    speaks = speaks_of_edits("\n".join(lines[i:end]))
    closed = any(at < end for at, _ in notes.doc.fences.behind(i))
    if broken.cut and (speaks or (not closed and _opens_object(lines[start].lstrip()))):
        raise UnreadableEdit.cut(i, "the response ends inside the JSON that begins here")
    if speaks:
        message = f"this looks like an edit in JSON that cannot be read: {broken}"
        raise UnreadableEdit(at, message, HINT, column=broken.column)


def _opens_object(text: str) -> bool:
    return text[1:].lstrip()[:1] in (("", '"') if text[:1] == "{" else ("", "{"))
