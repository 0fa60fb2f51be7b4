"""Edits in forms that are not read: found, so that they are never taken for prose.

Landing the blocks of a response while leaving out its diff would be a silent partial apply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchq.model import Problem

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a V4A patch",
        re.compile(r"^\s*\*{3} (?:Begin|End) Patch|^\*{3} (?:Add|Delete|Update) File:"),
    ),
    ("a unified diff", re.compile(r"^(?:diff --git |@@ .*@@|\+{3} \S)")),
    ("FIND/REPLACE blocks", re.compile(r"^\s*(?:FIND|REPLACE WITH)\s*:\s*$", re.IGNORECASE)),
    ("a whole file", re.compile(r"^(?:FILE: \S|(?:`{3,}|~{3,})[\w+#-]+:\S*[./]\S*\s*$)")),
    (
        "an edit call or edit script in JSON",
        re.compile(
            r'"(?:old_str(?:ing)?|oldString|new_str(?:ing)?|newString|file_text|insert_line|'
            r'contextualEdits|searchPattern|afterText|anchor)"\s*:'
        ),
    ),
)


def find(prose: Sequence[tuple[int, str]]) -> Problem | None:
    """The first line of the prose (number, text) that belongs to such a form, as a problem."""
    for number, line in prose:
        for what, sign in _SIGNS:
            if sign.search(line):
                return Problem(
                    "response.unreadable_edit",
                    f"line {number}, column 1: this looks like {what}, which is not read here",
                    "send every change as a SEARCH/REPLACE block",
                    line=number,
                )
    return None
