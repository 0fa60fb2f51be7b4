"""The keys by which JSON speaks of an edit, as they stand in a text: seen before it is parsed."""

from __future__ import annotations

import re

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
