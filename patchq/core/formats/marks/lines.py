"""Lines of a text: blank ones, and the marks of patches and diffs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Signed = tuple[str, str]  # a line's sign in a diff or patch (a space, `+` or `-`) and its text

# What patches and diffs are known by, to every format that may stand round one or beside one.
BEGIN_PATCH = "*** Begin Patch"  # the first line of a V4A patch
GIT = "diff --git "  # how git begins what a diff says of a file
DIFF_LANGUAGES = ("diff", "patch", "udiff", "git-diff")
DIFF_ENDINGS = (".diff", ".patch", ".udiff", ".rej")


def is_blank(line: str) -> bool:
    """Return whether the line is empty.

    A line of blanks is not.
    """
    return not line.strip("\r")


def next_line(lines: Sequence[str], index: int) -> int:
    """Return the index of the first line behind `index` that is not blank.

    It is the number of lines if there is none.
    """
    index += 1
    while index < len(lines) and not lines[index].strip():
        index += 1
    return index


def line_above(lines: Sequence[str], index: int, low: int) -> int:
    """Return the index of the last line above `index` that is not blank.

    It is `low - 1` if there is none.
    """
    index -= 1
    while index >= low and not lines[index].strip():
        index -= 1
    return index


def joined(lines: Iterable[str]) -> str:
    """Return the lines as text, each ended by a newline."""
    return "\n".join([*lines, ""])


def halves(lines: Iterable[Signed]) -> tuple[str, str]:
    """Return the old and the new text of signed lines."""
    lines = list(lines)
    old = joined([text for sign, text in lines if sign != "+"])
    return old, joined([text for sign, text in lines if sign != "-"])
