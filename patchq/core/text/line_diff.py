"""A line diff that is exact when it can be, and never slow.

What is alike at the front and the end goes first, then the lines that only one side has: neither
costs anything and neither loses a match.  Of the rest `rapidfuzz` finds a longest common
subsequence.  Where that would take too much memory, the lines that are unique on both sides cut the
texts into smaller ones (patience), and a stretch without such lines counts as changed as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

from patchq.core.model.values import LineHunk

Pairs = list[tuple[int, int]]
_Chain = tuple[tuple[int, int], "_Chain | None"]

_MOST_CELLS = 400_000_000  # pairs of lines that are compared; a bit of memory for each


def line_diff(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[LineHunk]:
    """Return the changed blocks from `a` to `b`, in order.

    Between two blocks is a common line.
    The lines outside the blocks are a longest common subsequence whenever `a` and `b` together
    have at most 500 lines once their common ends are off, and nearly always beyond.
    """
    shorter, front, back = min(len(a), len(b)), 0, 0
    while front < shorter and a[front] == b[front]:
        front += 1
    while back < shorter - front and a[-1 - back] == b[-1 - back]:
        back += 1
    a, b = a[front : len(a) - back], b[front : len(b) - back]
    if set(a).isdisjoint(b):  # most often so, with a line or two left of each
        return [(front, front + len(a), front, front + len(b))] if a or b else []
    shifted = (
        (front + i, front + x, front + j, front + y)
        for i, x, j, y in _between(_matches(a, b), 0, len(a), 0, len(b))
    )
    return [block for block in shifted if block[0] < block[1] or block[2] < block[3]]


def _matches(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Return the matching pairs of lines, in order."""
    numbers: dict[Hashable, int] = {}
    ours = [numbers.setdefault(line, len(numbers)) for line in a]
    theirs = [numbers.setdefault(line, len(numbers)) for line in b]
    pairs: Pairs = []
    blocks = [(0, len(a), 0, len(b))]
    while blocks:
        block = blocks.pop()
        found = _exact(ours, theirs, *block)
        if found is None:
            a0, a1, b0, b1 = block
            rare = _unique(theirs, b0, b1)
            found = _rising([(i, rare[n]) for n, i in _unique(ours, a0, a1).items() if n in rare])
            inner = _between(found, *block) if found else []
            blocks += [one for one in inner if one[0] < one[1] and one[2] < one[3]]
        pairs += found
    return sorted(pairs)


def _exact(a: list[int], b: list[int], a0: int, a1: int, b0: int, b1: int) -> Pairs | None:
    """Return a block's longest common subsequence; None if that is too much work."""
    shared = set(a[a0:a1]) & set(b[b0:b1])
    rows = [i for i in range(a0, a1) if a[i] in shared]
    columns = [j for j in range(b0, b1) if b[j] in shared]
    if len(rows) * len(columns) > _MOST_CELLS:
        return None
    from rapidfuzz.distance import LCSseq  # takes long to load, and few texts need it

    pairs: Pairs = []
    for op in LCSseq.opcodes([a[i] for i in rows], [b[j] for j in columns]):
        if op.tag == "equal":
            ours, theirs = rows[op.src_start : op.src_end], columns[op.dest_start : op.dest_end]
            pairs += zip(ours, theirs, strict=True)
    return pairs


def _between(pairs: Pairs, a0: int, a1: int, b0: int, b1: int) -> list[LineHunk]:
    """Return the blocks round the matched pairs of a block, empty ones too."""
    edges = pairwise([(a0 - 1, b0 - 1), *pairs, (a1, b1)])
    return [(i + 1, x, j + 1, y) for (i, j), (x, y) in edges]


def _unique(lines: list[int], start: int, end: int) -> dict[int, int]:
    counts = Counter(lines[start:end])
    return {lines[i]: i for i in range(start, end) if counts[lines[i]] == 1}


def _rising(pairs: Pairs) -> Pairs:
    """Return a longest subsequence of `pairs` that rises on both sides.

    `pairs` rise on the left.
    """
    tails: list[int] = []
    # The best one of each length, from its end; its last right side is in `tails`.
    chains: list[_Chain | None] = [None]
    for pair in pairs:
        length = bisect_left(tails, pair[1])
        tails[length : length + 1] = [pair[1]]
        chains[length + 1 : length + 2] = [(pair, chains[length])]
    found: Pairs = []
    chain = chains[-1]
    while chain:
        pair, chain = chain
        found.append(pair)
    return found[::-1]
