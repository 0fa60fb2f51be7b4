"""Fences: the lines that open and close code in Markdown, and the tags that models use instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*?)[ \t\r]*$")
_TAG = re.compile(r"^<(/?)(source|code|pre|codeblock|sourcecode)>[ \t]*(\S*)[ \t\r]*$")


@dataclass(frozen=True, slots=True)
class Fence:
    """One fence line: its kind (the character, or the tag's name), length and info."""

    kind: str
    length: int
    info: str = ""
    closing: bool = False
    """Whether it can only close (`</source>`)."""

    def closed_by(self, other: Fence) -> bool:
        """Whether `other` ends what this one opened."""
        if other.kind != self.kind or other.info:
            return False
        return other.closing if self.kind.isalpha() else other.length >= self.length


def fence(line: str) -> Fence | None:
    """The line as a fence, or None."""
    if match := _FENCE.match(line):
        return Fence(match[1][0], len(match[1]), match[2])
    if match := _TAG.match(line):
        return Fence(match[2], 1, match[3], closing=bool(match[1]))
    return None
