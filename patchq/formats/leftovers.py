"""A last look at the prose: what resembles an edit there was meant as one and cannot be read.

Every form refuses what begins as its own and is damaged.  Here is what no form recognises at all:
marks that stand beside other words or are indented, tags, halves that have lost their whole, and a
file's text in a form that may be an excerpt, beside edits.  Landing the rest of the response would
be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from patchq.formats.marks.fences import Fence, OpenFences, fence
from patchq.formats.marks.paths import (
    Known,
    is_path,
    path_line,
    path_of_info,
    path_of_sentence,
    undress,
)
from patchq.model.values import Problem

_HINT = "send every change as a SEARCH/REPLACE block"
_HINT_FILE = (
    "to write the file, put its path into the fence's info behind a colon (```python:path/to/file);"
    " to quote from it, let no path stand in the fence's info, right above it or on its first line"
)
_SIGNS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("a V4A patch", "v4a", re.compile(r"\s*\*{3} (?:Begin|End) Patch")),
    ("a unified diff", "unified_diff", re.compile(r"\s*(?:@@ .*@@|\+{3} \S)")),
    (
        "a part of a FIND/REPLACE pair",
        "find_replace",
        re.compile(r"[\s#*_>-]*(?:FIND|REPLACE\s+WITH)\s*:[\s*_]*$", re.IGNORECASE),
    ),
    ("a whole file", "whole_file", re.compile(r"FILE: *\S")),
    (
        "an edit in tags",
        "",
        re.compile(r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|search|replace|file_text)>"),
    ),
)
_SIGN = re.compile(
    "|".join(
        f"(?i:{sign.pattern})" if sign.flags & re.IGNORECASE else f"(?:{sign.pattern})"
        for _, _, sign in _SIGNS
    )
)
_KEYS = re.compile(
    r"[\"'](?:old_?str(?:ing)?|new_?str(?:ing)?|file_text|insert_line|contextualEdits|"
    r"searchPattern)[\"']\s*[:>]",
    re.IGNORECASE,
)
_EDITS = re.compile(r"[\"']edits[\"']\s*:")
_KEYS_OF_EDITS = re.compile(r"[\"'](?:anchor|target|afterText)[\"']\s*:")
_QUOTED = re.compile(r"[\"']")
_DIFF_LANGUAGES = ("diff", "patch", "udiff")
_COMMENT = re.compile(r"\s*(?:#(?!!)|//)")


class _Line(Enum):
    """What a line is by its text alone."""

    BLANK = 0
    PLAIN = 1
    MARKED = 2
    """A fence line, or one with a sign or key of an edit."""


def _kind(line: str) -> _Line:
    if not line.strip():
        return _Line.BLANK
    marked = (
        fence(line)
        or _SIGN.match(line)
        or (_QUOTED.search(line) and any(k.search(line) for k in (_KEYS, _EDITS, _KEYS_OF_EDITS)))
    )
    return _Line.MARKED if marked else _Line.PLAIN


def find(prose: Iterable[tuple[int, str]], known: Known) -> Problem | None:
    """The first line of the prose (number, text) that resembles an edit, as a problem."""
    reader = _Reader(known)
    reader.read(prose)
    reader.end_fence()
    if reader.found is None:
        return None
    number, what, hint = reader.found
    message = f"line {number}, column 1: this looks like {what}, but cannot be read as one"
    return Problem("response.unreadable_edit", message, hint, line=number)


def _hint(form: str) -> str:
    """What to send instead; `form` is the name of the format that was meant."""
    return f"write it as `patchq formats {form}` shows, or {_HINT}" if form else _HINT


class _Reader:
    """Reads prose line by line; `found` is the first line that is none, with what it is."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.found: tuple[int, str, str] | None = None
        self.fences = OpenFences()
        self.file_at = 0
        """The line of the open fence that may hold a file, since a path stands above it."""
        self.fresh = False
        """Whether the open fence has not had a line yet."""
        self.diff = False
        self.edits = False
        self.number = 0
        self.above = ""
        self.named: dict[str, bool] = {}
        """Whether a line over a fence names a path, as far as that was asked."""

    def read(self, prose: Iterable[tuple[int, str]]) -> None:
        """Take in the lines up to the first that is none of prose; numbers that are missing stand
        for blocks."""
        met: dict[str, _Line] = {}
        for number, line in prose:
            if number != self.number + 1:
                self.above, self.file_at, self.fresh = "", 0, False
            self.number = number
            kind = met.get(line)
            if kind is None:
                kind = met[line] = _kind(line)
            if kind is _Line.BLANK:
                continue
            if kind is _Line.PLAIN and not (self.fresh or self.diff):
                self.above = line
                continue
            if mark := fence(line):
                self._fence(mark)
                self.above = ""
            else:
                self._line(line, kind)
                self.above = line
            if self.found:
                return

    def end_fence(self) -> None:
        """A fence ends: one under a path, in which no block stood, is a file's text."""
        if self.file_at:
            self._find(self.file_at, "a whole file", _HINT_FILE)
            self.file_at = 0

    def _find(self, number: int, what: str, hint: str) -> None:
        if self.found is None or number < self.found[0]:
            self.found = number, what, hint

    def _fence(self, mark: Fence) -> None:
        self.fresh = self.fences.read(self.number, mark)
        self.diff = self.fresh and mark.info.split(" ")[0].lower() in _DIFF_LANGUAGES
        if not self.fresh:
            self.end_fence()
        elif mark.info and path_of_info(mark.info, self.known):
            self._find(self.number, "a whole file", _HINT_FILE)
        elif self.above and self._names_path(self.above):
            self.file_at = self.number

    def _names_path(self, line: str) -> bool:
        named = self.named.get(line)
        if named is None:
            path = path_line(line, self.known) or path_of_sentence(line, self.known)
            named = self.named[line] = path is not None
        return named

    def _line(self, line: str, kind: _Line) -> None:
        if self.fresh and _COMMENT.match(line):
            path = undress(line)[0]
            if is_path(path, self.known) and ("." in path or self.known(path)):
                self.file_at = self.number
        self.fresh = False
        if self.diff and line[0] in "+-":
            self._find(self.number, "a unified diff", _hint("unified_diff"))
        if kind is _Line.PLAIN:
            return
        for what, form, sign in _SIGNS:
            if sign.match(line):
                self._find(self.number, what, _hint(form))
        self.edits = self.edits or bool(_EDITS.search(line))
        if _KEYS.search(line) or (self.edits and _KEYS_OF_EDITS.search(line)):
            self._find(self.number, "an edit in JSON", _hint("edit_calls"))
