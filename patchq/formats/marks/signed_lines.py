"""What a diff's hunks and a patch's chunks share: signed lines, and the two halves they make."""

from __future__ import annotations

from collections.abc import Iterable

Signed = tuple[str, str]
"""A line's sign (a space, `+` or `-`) and its text."""


def is_blank(line: str) -> bool:
    """Whether nothing stands on the line; one that holds blanks is a line like any other."""
    return not line.strip("\r")


def joined(lines: Iterable[str]) -> str:
    """The lines as text, each ended by a newline."""
    return "".join(line + "\n" for line in lines)


def halves(lines: Iterable[Signed]) -> tuple[str, str]:
    """The old and the new text."""
    lines = list(lines)
    old = joined(text for sign, text in lines if sign != "+")
    return old, joined(text for sign, text in lines if sign != "-")
