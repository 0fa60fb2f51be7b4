"""Text for a person: coloured and in git's pager on a terminal, plain lines in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from shutil import get_terminal_size, which
from typing import NamedTuple

from patchq.cli.streams import put


class Styled(NamedTuple):
    """A piece of a line, and its style: words that rich knows."""

    text: str
    style: str = ""


Line = tuple[Styled, ...]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def height() -> int:
    """Return the number of lines that a screen shows beside the next prompt."""
    return max(get_terminal_size((80, 24)).lines - 1, 8)


def plain(text: str, style: str = "") -> Line:
    """A line in one style."""
    return (Styled(text, style),)


def show(
    lines: Iterable[Line], setting: str | None = None, *, crop: bool = False, paged: bool = True
) -> None:
    """Print the lines in the pager; `setting` is git's `core.pager`.

    With `crop` a terminal cuts each line to its width.
    """
    if is_terminal():
        from patchq.cli import pager  # only a terminal needs rich

        pager.show(lines, pager_of(setting) if paged else None, crop=crop)
        return
    for line in lines:
        put("".join(cell.text for cell in line))


def pager_of(setting: str | None) -> str | None:
    """Return the program that git shows its output with; None for none, or a missing one."""
    if os.environ.get("TERM") == "dumb":
        return None
    found = os.environ.get("GIT_PAGER")
    if found is None:
        found = setting if setting is not None else os.environ.get("PAGER", "less")
    found = found.strip()
    words = found.split()
    return found if words and words != ["cat"] and which(words[0]) else None
