"""Edits in forms that are not read: found, so that they are never taken for prose.

Landing the blocks of a response while leaving out its diff would be a silent partial apply.  So
would leaving out a file's new text: a fence under a path may be an excerpt as well, and since
nobody can tell, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchq.formats.fences import Fence, OpenFences, fence
from patchq.formats.paths import Known, is_path, path_line, path_of_info, path_of_sentence, undress
from patchq.model import Problem

_HINT = "send every change as a SEARCH/REPLACE block"
_HINT_EXCERPT = f"{_HINT}; let no path stand in the info of a quotation's fence or right above it"
_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a V4A patch",
        re.compile(r"\s*\*{3} (?:Begin|End) Patch|\s*\*{3} (?:Add|Delete|Update) File:"),
    ),
    ("a unified diff", re.compile(r"\s*(?:diff --git |@@ .*@@|\+{3} \S)")),
    (
        "FIND/REPLACE blocks",
        re.compile(r"[\s#*_>-]*(?:FIND|REPLACE\s+WITH)\s*:[\s*_]*$", re.IGNORECASE),
    ),
    ("a whole file", re.compile(r"FILE: *\S")),
    (
        "an edit in tags",
        re.compile(r"\s*<(?:old_str(?:ing)?|new_str(?:ing)?|search|replace|file_text)>"),
    ),
)
_KEYS = re.compile(
    r"[\"'](?:old_?str(?:ing)?|new_?str(?:ing)?|file_text|insert_line|contextualEdits|"
    r"searchPattern)[\"']\s*[:>]",
    re.IGNORECASE,
)
_EDITS = re.compile(r"[\"']edits[\"']\s*:")
_KEYS_OF_EDITS = re.compile(r"[\"'](?:anchor|target|afterText)[\"']\s*:")
_DIFF_LANGUAGES = ("diff", "patch", "udiff")
_COMMENT = re.compile(r"\s*(?:#(?!!)|//)")


def find(prose: Iterable[tuple[int, str]], known: Known) -> Problem | None:
    """The first line of the prose (number, text) that belongs to such a form, as a problem."""
    reader = _Reader(known)
    for number, line in prose:
        reader.read(number, line)
        if reader.found:
            break
    reader.end_fence()
    if reader.found is None:
        return None
    number, what, hint = reader.found
    message = f"line {number}, column 1: this looks like {what}, which is not read here"
    return Problem("response.unreadable_edit", message, hint, line=number)


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

    def read(self, number: int, line: str) -> None:
        """Take in the next line; numbers that are missing stand for blocks."""
        if number != self.number + 1:
            self.above, self.file_at, self.fresh = "", 0, False
        self.number = number
        if not line.strip():
            return
        if mark := fence(line):
            self._fence(mark)
            self.above = ""
        else:
            self._line(line)
            self.above = line

    def end_fence(self) -> None:
        """A fence ends: one under a path, in which no block stood, is a file's text."""
        if self.file_at:
            self._find(self.file_at, "a whole file", _HINT_EXCERPT)
            self.file_at = 0

    def _find(self, number: int, what: str, hint: str = _HINT) -> None:
        if self.found is None or number < self.found[0]:
            self.found = number, what, hint

    def _fence(self, mark: Fence) -> None:
        self.fresh = self.fences.read(self.number, mark)
        self.diff = self.fresh and mark.info.split(" ")[0].lower() in _DIFF_LANGUAGES
        if not self.fresh:
            self.end_fence()
        elif path_of_info(mark.info, self.known):
            self._find(self.number, "a whole file", _HINT_EXCERPT)
        elif self.above and (
            path_line(self.above, self.known) or path_of_sentence(self.above, self.known)
        ):
            self.file_at = self.number

    def _line(self, line: str) -> None:
        if self.fresh and _COMMENT.match(line):
            path = undress(line)[0]
            if is_path(path, self.known) and ("." in path or self.known(path)):
                self.file_at = self.number
        self.fresh = False
        if self.diff and line[0] in "+-":
            self._find(self.number, "a unified diff")
        for what, sign in _SIGNS:
            if sign.match(line):
                self._find(self.number, what)
        self.edits = self.edits or bool(_EDITS.search(line))
        if _KEYS.search(line) or (self.edits and _KEYS_OF_EDITS.search(line)):
            self._find(self.number, "an edit call or edit script in JSON")
