"""A line diff that is exact when it can be, and never slow.

What is alike at the front and the end goes first, then the lines that only one side has: neither
costs anything and neither loses a match.  Of the rest `rapidfuzz` finds a longest common
subsequence.  Where that would take too much memory, the lines that are unique on both sides cut the
texts into smaller ones (patience), and a stretch without such lines counts as changed as a whole.

Who made a change knows what it touched, so it need not be sought in the two texts again: the
hunks of a change that is known already become lines, and spare the diff of a report most lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

from patchq.core.model.values import Hunk, LineHunk

Pairs = list[tuple[int, int]]
_Chain = tuple[tuple[int, int], "_Chain | None"]

_MOST_CELLS = 400_000_000  # pairs of lines that are compared; a bit of memory for each


def line_diff(
    a: Sequence[Hashable], b: Sequence[Hashable], front: int = 0, back: int = 0
) -> list[LineHunk]:
    """Return the changed blocks from `a` to `b`, in order.

    Between two blocks is a common line.
    The lines outside the blocks are a longest common subsequence whenever `a` and `b` together
    have at most 500 lines once their common ends are off, and nearly always beyond.  The first
    `front` and the last `back` lines are known to be alike.
    """
    shorter = min(len(a), len(b))
    while front < shorter and a[front] == b[front]:
        front += 1
    back = min(back, shorter - front)
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
            found = _unique_pairs(ours, theirs, *block)
            blocks += _between(found, *block) if found else []
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


def _unique_pairs(a: list[int], b: list[int], a0: int, a1: int, b0: int, b1: int) -> Pairs:
    """Return the lines of a block that are unique on both sides, in order."""
    in_b = _unique(b, b0, b1)
    return _rising([(i, in_b[n]) for n, i in _unique(a, a0, a1).items() if n in in_b])


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


# ---------------------------------------------------------------- a change that is known


def whole_lines(before: bytes, after: bytes, hunks: Iterable[Hunk]) -> tuple[LineHunk, ...]:
    """Return the changed runs of whole lines, in order.

    An unchanged line is between any two.  `hunks`, in order and without overlap, make `after` of
    `before`, but for how the last line ends: offsets may count a final newline that the texts lack
    (see `Text.whole`).
    """
    spans: list[tuple[int, int, int, int]] = []
    shift = 0
    for hunk in hunks:
        end = hunk.end
        start = before.rfind(b"\n", 0, hunk.start) + 1
        new_start = start + shift
        shift += len(hunk.new) - (end - hunk.start)
        if not (_begins_line(before, end) and _begins_line(after, end + shift)):
            end = before.find(b"\n", end) + 1 or len(before)
        if spans and start <= spans[-1][1]:
            _append(spans, (start, end, new_start, end + shift))
        else:
            spans.append((start, end, new_start, end + shift))
    end, new_end = (spans[-1][1], spans[-1][3]) if spans else (0, 0)
    if end >= len(before) or not _ends_alike(before, end, after, new_end):
        start, new_start = len(before), len(before) + shift
        if spans and end >= len(before):
            start, _, new_start, _ = spans.pop()
        if not _begins_line(after, new_start):  # the line before it loses or gets its end
            line = before.rfind(b"\n", 0, max(start - 1, 0)) + 1
            start, new_start = line, new_start - (start - line)
        _append(spans, (start, len(before), new_start, len(after)))
    return tuple(_in_lines(before, after, spans))


def _ends_alike(one: bytes, start: int, other: bytes, other_start: int) -> bool:
    return len(one) - start == len(other) - other_start and other.endswith(one[start:])


def _begins_line(text: bytes, at: int) -> bool:
    return at == 0 or text[at - 1 : at] == b"\n"


def _append(spans: list[tuple[int, int, int, int]], span: tuple[int, int, int, int]) -> None:
    if spans and span[0] <= spans[-1][1]:
        start, _, new_start, _ = spans.pop()
        span = start, span[1], new_start, span[3]
    spans.append(span)


def _in_lines(
    before: bytes, after: bytes, spans: Iterable[tuple[int, int, int, int]]
) -> Iterable[LineHunk]:
    position = line = shift = 0
    for start, end, new_start, new_end in spans:
        line += before.count(b"\n", position, start)
        old, new = before[start:end], after[new_start:new_end]
        count, new_count = _count(old), _count(new)
        if old != new:
            yield line, line + count, line + shift, line + shift + new_count
        position, line, shift = end, line + count, shift + new_count - count


def _count(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and text != b"")


def known_diff(a: Sequence[bytes], b: Sequence[bytes], hunks: Sequence[LineHunk]) -> list[LineHunk]:
    """Return `line_diff(a, b)` where `hunks` hold all differences.

    Where all lines that go away or are new are nowhere else, only the lines of the hunks are
    compared: all others are alike, and no diff could match more.
    """
    if len(hunks) > 1:
        found: list[LineHunk] = []
        for a0, a1, b0, b1 in hunks:
            parts = line_diff(a[a0:a1], b[b0:b1])
            found += [(a0 + i, a0 + j, b0 + k, b0 + m) for i, j, k, m in parts]
        gone = {line for a0, a1, _, _ in found for line in a[a0:a1]}
        new = {line for _, _, b0, b1 in found for line in b[b0:b1]}
        bounds = zip([0, *(h[1] for h in found)], [*(h[0] for h in found), len(a)], strict=True)
        if gone.isdisjoint(new) and all(map((gone | new).isdisjoint, (a[i:j] for i, j in bounds))):
            return found
    front, back = (hunks[0][0], len(a) - hunks[-1][1]) if hunks else (0, 0)
    return line_diff(a, b, front, back)
