"""What a document's lines tell of edits in JSON, before it is parsed and after some of it was."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property

from patchq.formats.format import Document

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


def speaks_of_edits(text: str) -> bool:
    """Whether a text that is no JSON holds an edit's key all the same."""
    if ":" not in text:
        return False
    found = _EDITS.search(text)
    return _ANY_KEY.search(text) is not None or (
        found is not None and _ITEM.search(text, found.end()) is not None
    )


def lines_with_keys(text: str) -> list[int]:
    """The lines (indices) on which something begins that `speaks_of_edits` looks for."""
    found: list[int] = []
    line = counted = 0
    for match in _NAMED.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        found.append(line)
    return found


def is_member(line: str) -> bool:
    """Whether a line begins with an edit's key."""
    return _MEMBER.match(line) is not None


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
        return lines_with_keys("\n".join(self.doc.lines))

    def name_edit(self, first: int, end: int) -> bool:
        """Whether an edit's key in JSON, or `edits`, begins on lines `first` to `end` (indices)."""
        k = bisect_left(self._named, first)
        return k < len(self._named) and self._named[k] < end


def is_vain(doc: Document, i: int) -> bool:
    """Whether the JSON on line `i` (an index) of a document is known to be no edit."""
    notes: JsonNotes = doc.memory[JsonNotes]
    if i < notes.end:
        return True
    return i + WINDOW < len(doc.lines) and tuple(doc.lines[i : i + WINDOW]) in notes.vain
