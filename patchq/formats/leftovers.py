"""A last look at the prose: what resembles an edit there was meant as one and cannot be read.

Every format refuses what begins as its own and is damaged.  Here is what none recognises at all:
the signs that the formats name, tags, and a file's text in a form that may be an excerpt, beside
edits.  Landing the rest of the response would be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from patchq.formats.format import Format, Sign
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
_TAGS = Sign(
    "an edit in tags", r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|search|replace|file_text)>"
)
_COMMENT = re.compile(r"\s*(?:#(?!!)|//)")
_NEVER = r"(?!)"
Seeks = Callable[[str], re.Match[str] | None]


class _Kind(Enum):
    """What a line is by its text alone."""

    BLANK = 0
    PLAIN = 1
    MARKED = 2
    """A fence line, or one with a sign of an edit."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A sign, ready to be sought on a line, and what to send instead."""

    sign: Sign
    seeks: Seeks
    seeks_behind: Seeks | None
    hint: str


class Signs:
    """What resembles edits of some formats, the narrower first: signs in certain fences, those at
    a line's start, those anywhere."""

    def __init__(self, formats: Iterable[Format]) -> None:
        named = [(sign, _hint(form.name)) for form in formats for sign in form.signs]
        named = sorted(
            [*named, (_TAGS, _HINT)], key=lambda one: (not one[0].languages, one[0].anywhere)
        )
        self.searches = tuple(_search(sign, hint) for sign, hint in named)
        self.languages = frozenset().union(*(sign.languages for sign, _ in named))
        plain = [sign for sign, _ in named if not sign.languages]
        self._starts = _any_of(sign.pattern for sign in plain if not sign.anywhere).match
        self._holds = _any_of(
            pattern
            for sign in plain
            for pattern in (sign.pattern if sign.anywhere else None, sign.behind)
            if pattern
        ).search

    def kind(self, line: str) -> _Kind:
        """What the line is, wherever it stands."""
        if not line.strip():
            return _Kind.BLANK
        marked = fence(line) or self._starts(line) or self._holds(line)
        return _Kind.MARKED if marked else _Kind.PLAIN


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


def _hint(name: str) -> str:
    """What to send instead of an edit of the format of that name."""
    return f"write it as `patchq formats {name}` shows, or {_HINT}"


def _search(sign: Sign, hint: str) -> _Search:
    pattern = re.compile(sign.pattern)
    behind = re.compile(sign.behind).search if sign.behind else None
    return _Search(sign, pattern.search if sign.anywhere else pattern.match, behind, hint)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of them; a beginning that all of them share makes it fast."""
    return re.compile("|".join(patterns) or _NEVER)


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
        self.named: dict[str, bool] = {}
        """Whether a line over a fence names a path, as far as that was asked."""

    def read(self, prose: Iterable[tuple[int, str]]) -> None:
        """Take in the lines up to the first that is none of prose; numbers that are missing stand
        for blocks."""
        kinds: dict[str, _Kind] = {}
        for number, line in prose:
            if number != self.number + 1:
                self.above, self.file_at, self.opened = "", 0, False
            self.number = number
            kind = kinds.get(line)
            if kind is None:
                kind = kinds[line] = self.signs.kind(line)
            if kind is _Kind.BLANK:
                continue
            mark = fence(line) if kind is _Kind.MARKED else None
            if mark:
                self._fence(mark)
            elif kind is _Kind.MARKED or self.opened or self.language:
                self._line(line)
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
        elif self.above and self._names_path(self.above):
            self.file_at = self.number

    def _names_path(self, line: str) -> bool:
        named = self.named.get(line)
        if named is None:
            path = path_line(line, self.known) or path_of_sentence(line, self.known)
            named = self.named[line] = path is not None
        return named

    def _line(self, line: str) -> None:
        if self.opened and _COMMENT.match(line):
            path = undress(line)[0]
            if is_path(path, self.known) and ("." in path or self.known(path)):
                self.file_at = self.number
        self.opened = False
        for search in self.signs.searches:
            sign = search.sign
            if sign.behind and search.seeks_behind and search.seeks_behind(line):
                self.met.add(sign.behind)
            if sign.languages and self.language not in sign.languages:
                continue
            if (not sign.behind or sign.behind in self.met) and search.seeks(line):
                self._find(self.number, sign.what, search.hint)
