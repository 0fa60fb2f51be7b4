"""Hunks of lines, made and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from patchq.core.model.values import LineHunk
from patchq.core.text.lines import split_lines


def applied(lines: Sequence[bytes], hunks: Sequence[LineHunk], made: Sequence[bytes]) -> bytes:
    """The lines with the hunks' new lines, which are those of `made`, in place of the old."""
    parts, position = list[bytes](), 0
    for a0, a1, b0, b1 in hunks:
        parts += [*lines[position:a0], *made[b0:b1]]
        position = a1
    return b"".join([*parts, *lines[position:]])


def inverse(hunks: Sequence[LineHunk]) -> list[LineHunk]:
    return [(b0, b1, a0, a1) for a0, a1, b0, b1 in hunks]


def assert_lead(before: bytes, hunks: Sequence[LineHunk] | None, after: bytes) -> None:
    """Fail unless the hunks make `after` of `before` and the reverse, with lines between them."""
    assert hunks is not None
    a, b = split_lines(before), split_lines(after)
    assert applied(a, hunks, b) == after
    assert applied(b, inverse(hunks), a) == before
    assert all(one[1] < other[0] for one, other in pairwise(hunks))
