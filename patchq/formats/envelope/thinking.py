"""Thinking blocks: what a model says to itself before it answers is no part of the answer.

Drafts of edits stand in them, so they are taken off, and only outside of edits: a file's own text
may hold such tags.  So the reader of the edits, who knows where those stand, calls this.  Lines are
blanked, never removed; their numbers stay those of the response.
"""

from __future__ import annotations

import re

_OPEN = re.compile(r"<(think|thinking)>")
_CLOSE = re.compile(r"(?:</(?:think|thinking)>)+")


def opens_thought(line: str) -> bool:
    """Whether a thinking block opens at the line's start."""
    return _OPEN.match(line) is not None


def closes_thought(line: str) -> bool:
    """Whether the line begins with the end of a thinking block."""
    return _CLOSE.match(line) is not None


def blank_thought(lines: list[str], start: int) -> int | None:
    """Blank the thinking block that opens on line `start` (an index), and those that follow it on
    the line it ends on.

    Returns the index of that line, which keeps what stands behind the closing tag; None if the
    block is never closed, and then nothing is blanked.
    """
    end, at = start, 0
    while opening := _OPEN.match(lines[end], at):
        tag, at = f"</{opening[1]}>", opening.end()
        while (closing := lines[end].find(tag, at)) < 0:
            end, at = end + 1, 0
            if end == len(lines):
                return None
        at = closing + len(tag)
    lines[start : end + 1] = [""] * (end - start) + [lines[end][at:]]
    return end


def without_close(line: str) -> str:
    """What stands behind the closing tag, or tags, that the line begins with."""
    return _CLOSE.sub("", line, count=1)
