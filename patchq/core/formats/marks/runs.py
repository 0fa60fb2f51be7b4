"""Blocks that follow each other and are written alike: read in one go.

A long response has hundreds of them: the path, a block, a blank line, the path again.  What holds
of the first, how its path is read and where its lines end, holds of all that are the same line by
line, but for what they quote and write.  The first block that differs in anything ends the run, and
is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from patchq.core.formats.marks.blocks import MARKER_HEADS, BlockMarker


class AlikeBlock(NamedTuple):
    """The indices of the lines of a block: that of its path and its markers."""

    named: int
    start: int
    divider: int
    end: int


def alike_behind(
    lines: Sequence[str], end: int, named: str, marker: BlockMarker
) -> Iterator[AlikeBlock]:
    """The blocks behind line `end` (an index) that stand under the line `named`, with no other line
    round them, and have markers as plain as `marker` can be."""
    markers = (marker.opening, marker.divider, marker.closing)
    heads = (i for i in range(end, len(lines)) if lines[i][:5] in MARKER_HEADS)
    for start, divider, close in zip(heads, heads, heads, strict=False):
        if (lines[start], lines[divider], lines[close]) != markers:
            return
        above = start - 1
        if above < end or lines[above] != named:
            return
        if above > end and any(map(str.strip, lines[end:above])):
            return
        yield AlikeBlock(above, start, divider, close)
        end = close + 1
