"""Text for a person: coloured and in git's pager on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from patchq.cli.streams import put


class Styled(NamedTuple):
    """A piece of a line, and its style: words that rich knows."""

    text: str
    style: str = ""


Line = tuple[Styled, ...]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def plain(text: str, style: str = "") -> Line:
    """A line in one style."""
    return (Styled(text, style),)


def show(lines: Iterable[Line], *, crop: bool = False, paged: bool = True) -> None:
    """Print the lines, in git's pager on a terminal, which with `crop` cuts each to its width."""
    if is_terminal():
        from patchq.cli import pager  # only a terminal needs rich

        pager.show(lines, crop=crop, paged=paged)
        return
    for line in lines:
        put("".join(cell.text for cell in line))
