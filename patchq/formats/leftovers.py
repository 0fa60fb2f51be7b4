"""A last look at the prose: what resembles an edit there was meant as one and cannot be read.

Every format refuses what begins as its own and is damaged.  Here is what none recognises at all:
the signs that the formats name, tags, and a file's text in a form that may be an excerpt, beside
edits.  Landing the rest of the response would be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from patchq.formats.format import Format, Sign
from patchq.formats.marks.lines import Fence, OpenFences, fence
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
_TAGS = Sign(
    "an edit in tags", r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|search|replace|file_text)>"
)
_COMMENT = re.compile(r"\s*(?:#(?!!)|//)")


class Signs:
    """What resembles edits of some formats, the narrower first: signs in certain fences, those at
    a line's start, those anywhere.  Each has a hint: what to send instead."""

    def __init__(self, formats: Iterable[Format]) -> None:
        hints = [
            (sign, f"write it as `patchq formats {form.name}` shows, or {_HINT}")
            for form in formats
            for sign in form.signs
        ]
        self.fenced = [(sign, hint) for sign, hint in hints if sign.languages]
        others = [(sign, hint) for sign, hint in hints if not sign.languages]
        self.others = sorted([*others, (_TAGS, _HINT)], key=lambda other: other[0].anywhere)
        self.languages = frozenset().union(*(sign.languages for sign, _ in self.fenced))
        anywhere = [sign for sign, _ in self.others if sign.anywhere]
        self._starts = re.compile(
            "|".join(sign.pattern for sign, _ in self.others if not sign.anywhere)
        ).match
        # Alternatives that begin alike are sought as fast as one.
        self._holds = re.compile(
            "|".join(filter(None, (p for sign in anywhere for p in (sign.pattern, sign.behind))))
            or r"(?!)"
        ).search

    def mark(self, line: str) -> bool | None:
        """Whether the line is a fence line or has a sign, wherever it stands; None if it is
        blank."""
        if not line.strip():
            return None
        return bool(fence(line) or self._starts(line) or self._holds(line))


def find(prose: Iterable[tuple[int, str]], signs: Signs, known: Known) -> Problem | None:
    """The first line of the prose (number, text) that resembles an edit, as a problem."""
    reader = _ProseReader(signs, known)
    reader.read(prose)
    reader.end_fence()
    if reader.found is None:
        return None
    number, what, hint = reader.found
    message = f"line {number}, column 1: this looks like {what}, but cannot be read as one"
    return Problem("response.unreadable_edit", message, hint, line=number)


class _ProseReader:
    """Reads prose line by line; `found` is the first line that is none, with what it is."""

    def __init__(self, signs: Signs, known: Known) -> None:
        self.signs = signs
        self.known = known
        self.found: tuple[int, str, str] | None = None
        self.fences = OpenFences()
        self.file_at = 0
        """The line of the open fence that may hold a file, since a path stands above it."""
        self.opened = False
        """Whether the open fence has not had a line yet."""
        self.language = ""
        """The language of the open fence, where it may be one of signs."""
        self.met: set[str] = set()
        """What signs have to stand behind, as far as it was met."""
        self.number = 0
        self.above = ""
        self.path_on = cache(lambda line: path_line(line, known) or path_of_sentence(line, known))
        """The path that a line over a fence names, remembered."""

    def read(self, prose: Iterable[tuple[int, str]]) -> None:
        """Take in the lines up to the first that is none of prose; numbers that are missing stand
        for blocks."""
        mark_of = cache(self.signs.mark)
        for number, line in prose:
            if number != self.number + 1:
                self.above, self.file_at, self.opened = "", 0, False
            self.number = number
            marked = mark_of(line)
            if marked is None:
                continue
            mark = fence(line) if marked else None
            if mark:
                self._fence(mark)
            elif marked or self.opened or self.language:
                self._line(line, marked)
            self.above = "" if mark else line
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
        self.opened = self.fences.read(self.number, mark)
        language = mark.info.split(" ")[0].lower() if self.opened else ""
        self.language = language if language in self.signs.languages else ""
        if not self.opened:
            self.end_fence()
        elif mark.info and path_of_info(mark.info, self.known):
            self._find(self.number, "a whole file", _HINT_FILE)
        elif self.above and self.path_on(self.above):
            self.file_at = self.number

    def _line(self, line: str, marked: bool) -> None:
        if self.opened and _COMMENT.match(line):
            path = undress(line)[0]
            if is_path(path, self.known) and ("." in path or self.known(path)):
                self.file_at = self.number
        self.opened = False
        for sign, hint in self.signs.fenced if self.language else ():
            if self.language in sign.languages and re.match(sign.pattern, line):
                self._find(self.number, sign.what, hint)
        for sign, hint in self.signs.others if marked else ():
            if sign.behind and re.search(sign.behind, line):
                self.met.add(sign.behind)
            seek = re.search if sign.anywhere else re.match
            if (not sign.behind or sign.behind in self.met) and seek(sign.pattern, line):
                self._find(self.number, sign.what, hint)
