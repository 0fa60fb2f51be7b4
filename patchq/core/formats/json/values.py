"""Where JSON stands in a response's text: in a fence, or bare from a line's start; and what a
document's lines tell of edits in it, before it is parsed and after some of it was.

A value is read as far as it goes, not as far as its fence does: models put raw line ends into
strings, and fence lines with them.  It is read from its own line first and from more only when it
needs them, so that no text costs more than its length, wherever the attempts begin.  What a few
lines hold is remembered, and so told relative to the line on which it begins: many short values
are mostly the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.lines import Fence, fence, next_line
from patchq.core.text import jsonish
from patchq.core.text.jsonish import JsonError, Node

WINDOW = 4
"""So many lines are mostly enough to see whether a value can be read."""
_MANY = 1024
"""So many runs of lines are remembered."""
_KEY = (
    r"(?:(?:old|new)[_-]?(?:string|str|text)|file_?text|insert_?line|contextualEdits|searchPattern)"
)
_QUOTE = r"\\*[\"'\u201c\u201d\u2018\u2019]"


_ANY_KEY = re.compile(
    rf"{_QUOTE}{_KEY}{_QUOTE}\s*:|(?<![\w\"'-]){_KEY}\s*:",
    re.IGNORECASE,
)
_MEMBER = re.compile(rf"\s*{_QUOTE}{_KEY}{_QUOTE}\s*:", re.IGNORECASE)
_EDITS = re.compile(rf"(?:{_QUOTE}|\b)edits(?:{_QUOTE})?\s*:\s*\[", re.IGNORECASE)
_NAMED = re.compile(rf"{_ANY_KEY.pattern}|{_EDITS.pattern}", re.IGNORECASE)
_ITEM = re.compile(rf"(?:{_QUOTE}|\b)(?:anchor|target|afterText)(?:{_QUOTE})?\s*:", re.IGNORECASE)

HINT = "send one JSON object or list in a form that `patchq formats` lists, and nothing else in it"
_UNQUOTED_LINES = 20
_SHORT = 120
_REMEMBERED = 600
"""Longer texts than these are not judged at once, and not remembered."""
_WORD_TO_END = re.compile(r"[\w.+/-]*\s*\Z")
_FENCE_END = re.compile(r"`{3,}|~{3,}")


Tells = Callable[[Node], bool]
"""Whether a value may be an edit."""


def is_member(line: str) -> bool:
    """Whether a line begins with an edit's key."""
    return _MEMBER.match(line) is not None


def speaks_of_edits(text: str) -> bool:
    """Whether a text that is no JSON holds an edit's key all the same."""
    if ":" not in text:
        return False
    if _ANY_KEY.search(text):
        return True
    edits = _EDITS.search(text)
    return bool(edits and _ITEM.search(text, edits.end()))


class JsonNotes:
    """What is known of the JSON in a document."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.end = 0
        """The first line (index) behind what was read as JSON and holds no edit."""
        self.vain: set[tuple[str, ...]] = set()
        """Runs of `WINDOW` lines on the first of which no JSON begins that may be an edit, whatever
        follows, while some may begin on the next."""

    def add_vain(self, i: int) -> None:
        """Remember that no edit begins in JSON on line `i`, as it and the next few lines tell."""
        if len(self.vain) < _MANY and i + WINDOW < len(self.doc.lines):
            self.vain.add(tuple(self.doc.lines[i : i + WINDOW]))

    @cached_property
    def speak_of_edits(self) -> bool:
        """Whether an edit's key in JSON stands anywhere in the text."""
        return speaks_of_edits("\n".join(self.doc.lines))

    @cached_property
    def _named(self) -> list[int]:
        """The lines (indices) on which an edit's key in JSON, or `edits`, begins."""
        text = "\n".join(self.doc.lines)
        starts = [0, *(match.start() for match in _NAMED.finditer(text))]
        return list(accumulate(text.count("\n", *pair) for pair in pairwise(starts)))

    def name_edit(self, first: int, end: int) -> bool:
        """Whether an edit's key in JSON, or `edits`, begins on lines `first` to `end` (indices)."""
        k = bisect_left(self._named, first)
        return k < len(self._named) and self._named[k] < end


def is_vain(doc: Document, i: int) -> bool:
    """Whether the JSON on line `i` (an index) of a document is known to be no edit."""
    notes: JsonNotes = doc.memory[JsonNotes]
    return i < notes.end or (
        i + WINDOW < len(doc.lines) and tuple(doc.lines[i : i + WINDOW]) in notes.vain
    )


# ---------------------------------------------------------------- values


class JsonValue(Struct, frozen=True):
    """One value; lines are counted from the one on which it begins, which is 0."""

    node: Node
    end: int
    """Its last line."""
    column: int
    """Where in its last line the text behind it begins."""
    plain: bool
    """Whether it is known to be no edit."""


class BrokenJson(Struct, frozen=True):
    """No value: what was wrong, on which line (counted from the value's, 0) and column (from 1)."""

    line: int
    column: int
    message: str
    cut: bool
    """Whether the text ends inside of the value."""
    sync: int
    """Before this line no other value begins: all that stands there was read as JSON."""
    lines: int
    """So many lines were read to tell."""


class JsonRun(Struct, frozen=True):
    """Values one behind the other, with blank lines and commas between them at most."""

    values: tuple[tuple[int, JsonValue], ...]
    """Those that may be edits, with the indices of the lines on which they begin."""
    last: int
    """The index of the line on which the last value of all ends."""
    end: int
    """The index of the first line behind the run, and behind its fence."""
    behind: int | None = None
    """The index of the first line of text that stands between the values and their fence's end, or
    that goes on with the last value."""


def begins(line: str) -> bool:
    """Whether a line begins with what may be an object or a list."""
    return line.lstrip()[:1] in ("{", "[")


def value_at(lines: Sequence[str], index: int, tells: Tells) -> JsonValue | BrokenJson:
    """The value that begins on line `index`."""
    line = lines[index]
    alone = index + WINDOW < len(lines) and ("}" in line or "]" in line)
    count = 1 if alone else WINDOW
    while True:
        text = "\n".join(lines[index : index + count]) if count > 1 else line
        whole = index + count >= len(lines)
        read = _recent if len(text) < _REMEMBERED else _read
        if value := read(text, whole, tells):
            return value
        count *= 4


def _read(text: str, whole: bool, tells: Tells) -> JsonValue | BrokenJson | None:
    """The value with which a text begins; None if more lines have to tell, which the text has
    unless it is the `whole` rest of the response."""
    try:
        node, end = jsonish.parse_at(text, 0)
    except JsonError as error:
        return None if error.cut and not whole else _broken(text, error, whole)
    column = end - (text.rfind("\n", 0, end) + 1)
    plain = len(text) < _SHORT and not tells(node)
    return JsonValue(node, text.count("\n", 0, end), column, plain)


_recent = lru_cache(1024)(_read)
"""A text of many short values has few different ones."""


def _broken(text: str, error: JsonError, whole: bool) -> BrokenJson:
    """What is wrong with the value with which a text begins."""
    position = error.position
    cut = whole and (error.cut or _WORD_TO_END.match(text, position) is not None)
    # The last string may hide where another value begins; nothing before its first quote does.
    closing = text.rfind('"', 0, position)
    opening = text.rfind('"', 0, closing) if closing > 0 else -1
    sync = text.count("\n", 0, position if closing < 0 else max(opening, 0))
    return BrokenJson(error.line - 1, error.column, str(error), cut, sync, text.count("\n") + 1)


def bare_run(lines: Sequence[str], index: int, tells: Tells) -> JsonRun | BrokenJson:
    """The values that stand without a fence from line `index` on."""
    found = _values(lines, index, tells)
    if isinstance(found, BrokenJson):
        return found
    values, last, rest = found
    below = next_line(lines, last)
    # What begins so only makes sense behind a value that is part of another one.
    goes_on = below < len(lines) and lines[below].strip()[:1] in (",", "]", "}")
    return JsonRun(values, last, last + 1, last if rest else below if goes_on else None)


def fenced_run(lines: Sequence[str], index: int, mark: Fence, tells: Tells) -> JsonRun | BrokenJson:
    """The values from line `index` on, the first with text in the fence that `mark` opens."""
    found = _values(lines, index, tells)
    if isinstance(found, BrokenJson):
        return found
    values, last, rest = found
    if _FENCE_END.fullmatch(rest):
        return JsonRun(values, last, last + 1)
    text = last if rest not in ("", ",") else None
    for i in range(last + 1, len(lines)):
        if (found_fence := fence(lines[i])) is not None:
            if not mark.closed_by(found_fence):
                break
            return JsonRun(values, last, i + 1, text)
        if text is None and lines[i].strip():
            text = i
    # The fence's end is missing: what stands behind the values is prose.
    return JsonRun(values, last, last + 1, last if rest else None)


def _values(
    lines: Sequence[str], index: int, tells: Tells
) -> tuple[tuple[tuple[int, JsonValue], ...], int, str] | BrokenJson:
    """The value of line `index` and those that follow it, as far as they may be edits; the index
    of the line on which the last of all ends, and the text behind it there."""
    value = value_at(lines, index, tells)
    if isinstance(value, BrokenJson):
        return value
    values: list[tuple[int, JsonValue]] = []
    while True:
        if not value.plain:
            values.append((index, value))
        last = index + value.end
        rest = lines[last][value.column :].strip()
        index = next_line(lines, last) if rest in ("", ",") else len(lines)
        if index == len(lines) or not begins(lines[index]):
            return tuple(values), last, rest
        further = value_at(lines, index, tells)
        if isinstance(further, BrokenJson):
            return tuple(values), last, rest
        value = further


# ---------------------------------------------------------------- what cannot be read


def check_broken(notes: JsonNotes, i: int, start: int, broken: BrokenJson) -> None:
    """Refuse a value that cannot be read, if it may be an edit; else remember that it is none.

    It begins on line `start`: on line `i`, or in the fence that opens there.
    """
    if broken.cut or notes.speak_of_edits:
        _check_region(notes, i, start, broken)
    elif broken.sync <= 1 and broken.lines <= WINDOW:
        notes.add_vain(start)
    notes.end = max(notes.end, i + 1, len(notes.doc.lines) if broken.cut else start + broken.sync)


def _check_region(notes: JsonNotes, i: int, start: int, broken: BrokenJson) -> None:
    """Refuse a value that cannot be read, if its lines speak of an edit or end the response."""
    doc, at = notes.doc, start + broken.line
    begins_own = at > i and begins(doc.lines[at])  # and is looked at for itself
    region = doc.lines[i : at + (not begins_own)]
    if broken.cut:
        first = doc.lines[start].lstrip()
        closed = any(fence(line) for line in region[1:])
        if speaks_of_edits("\n".join(region)) or (not closed and _opens_object(first)):
            raise UnreadableEdit.cut(i, "the response ends inside the JSON that begins here")
    if not (notes.speak_of_edits and notes.name_edit(i, at + _UNQUOTED_LINES)):
        return
    rest = doc.lines[at][broken.column - 1 :].split(":")[0].rstrip()
    if rest.isidentifier():  # an object of JavaScript
        for line in doc.lines[at + 1 : at + _UNQUOTED_LINES]:
            if not line.strip():
                break
            region = [*region, line]
    if speaks_of_edits("\n".join(region)):
        raise UnreadableEdit(
            at,
            f"this looks like an edit in JSON that cannot be read: {broken.message}",
            HINT,
            column=broken.column,
        )


def _opens_object(text: str) -> bool:
    """Whether a text begins as an object or a list of objects does, as far as it goes."""
    return text[1:].lstrip()[:1] in (("", '"') if text[:1] == "{" else ("", "{"))
