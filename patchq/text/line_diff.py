"""Which lines two texts share: a line diff that is exact when it can be, and never slow.

What is alike at the front and the end goes first, then the lines that only one side has: neither
costs anything and neither loses a match.  Myers' greedy algorithm finds a longest common
subsequence of the rest.  Its effort grows with the differences, so it works on a budget; where
that runs out, the lines that are unique on both sides cut the texts into smaller ones (patience),
and a stretch without such lines counts as changed as a whole.  The budget is counted in steps, not
in time, so that the same texts always give the same answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence

from patchq.model.values import LineHunk

Pairs = list[tuple[int, int]]

_STEPS = 400_000
_STEPS_PER_LINE = 8


def line_diff(
    a: Sequence[Hashable], b: Sequence[Hashable], front: int = 0, back: int = 0
) -> list[LineHunk]:
    """The changed blocks from `a` to `b`, in order; between two blocks stands a common line.

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
    if not a or not b or set(a).isdisjoint(b):
        return [(front, front + len(a), front, front + len(b))] if a or b else []
    blocks: list[LineHunk] = []
    i = j = 0
    for x, y in [*_Matcher(a, b).run(), (len(a), len(b))]:
        if x > i or y > j:
            blocks.append((front + i, front + x, front + j, front + y))
        i, j = x + 1, y + 1
    return blocks


class _Matcher:
    """Collects the matching pairs of one diff; holds the budget that its parts share."""

    def __init__(self, a: Sequence[Hashable], b: Sequence[Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        self.a = [numbers.setdefault(line, len(numbers)) for line in a]
        self.b = [numbers.setdefault(line, len(numbers)) for line in b]
        self.budget = _STEPS + _STEPS_PER_LINE * (len(a) + len(b))
        self.pairs: Pairs = []

    def run(self) -> Pairs:
        spans = [(0, len(self.a), 0, len(self.b))]
        while spans:
            a0, a1, b0, b1 = self._trim(*spans.pop())
            if a0 < a1 and b0 < b1 and not self._exact(a0, a1, b0, b1):
                spans += self._split(a0, a1, b0, b1)
        self.pairs.sort()
        return self.pairs

    def _trim(self, a0: int, a1: int, b0: int, b1: int) -> LineHunk:
        """What is left of a block without the lines that it shares at its front and its end."""
        a, b = self.a, self.b
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            self.pairs.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            self.pairs.append((a1, b1))
        return a0, a1, b0, b1

    def _exact(self, a0: int, a1: int, b0: int, b1: int) -> bool:
        """Match a block by its longest common subsequence; False if that is too much work."""
        a, b = self.a, self.b
        shared = set(a[a0:a1]) & set(b[b0:b1])
        rows = [i for i in range(a0, a1) if a[i] in shared]
        columns = [j for j in range(b0, b1) if b[j] in shared]
        found, steps = _myers([a[i] for i in rows], [b[j] for j in columns], self.budget // 2)
        self.budget -= steps
        if found is None:
            return False
        self.pairs += [(rows[i], columns[j]) for i, j in found]
        return True

    def _split(self, a0: int, a1: int, b0: int, b1: int) -> list[LineHunk]:
        """The blocks between the lines that are unique on both sides; those lines are matched."""
        in_b = _unique(self.b, b0, b1)
        anchors = [(i, in_b[n]) for n, i in _unique(self.a, a0, a1).items() if n in in_b]
        blocks: list[LineHunk] = []
        for i, j in _rising(anchors):
            self.pairs.append((i, j))
            blocks.append((a0, i, b0, j))
            a0, b0 = i + 1, j + 1
        return [*blocks, (a0, a1, b0, b1)] if blocks else []


def _myers(a: list[int], b: list[int], limit: int) -> tuple[Pairs | None, int]:
    """Pairs of a longest common subsequence, or None if it takes more than `limit` steps; and the
    steps that were taken.

    `reach[k]` is how far into `a` the diagonal `k` (row minus column) can be followed at the price
    of `d` unmatched lines; -1 is a diagonal that was not reached.  Steps are at most half the
    square of the lines plus their product.
    """
    n, m = len(a), len(b)
    centre = m + 1
    reach = [-1] * (n + m + 3)
    reach[centre + 1] = 0
    history: list[tuple[int, list[int]]] = []
    steps = 0
    for d in range(n + m + 1):
        low, high = max(-d, -m + (d + m) % 2), min(d, n - (d + n) % 2)
        history.append((low - 1, reach[centre + low - 1 : centre + high + 2]))
        for k in range(low, high + 1, 2):
            left, right = reach[centre + k - 1], reach[centre + k + 1]
            start = x = right if left < right else left + 1
            y = x - k
            while x < n and y < m and a[x] == b[y]:
                x, y = x + 1, y + 1
            reach[centre + k] = x
            steps += 1 + x - start
            if x >= n and y >= m:
                return _walk_back(history, n, m), steps
        if steps > limit:
            break
    return None, steps


def _walk_back(history: list[tuple[int, list[int]]], x: int, y: int) -> Pairs:
    """The matched pairs on the way that `history` took to the corner (`x`, `y`), from its end."""
    pairs: Pairs = []
    for first, reach in reversed(history):
        k = x - y
        left, right = reach[k - 1 - first], reach[k + 1 - first]
        start = right if left < right else left + 1
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = (x, y - 1) if left < right else (x - 1, y)
    return pairs


def _unique(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Where each line that `lines[start:end]` has once stands, in their order."""
    places: dict[int, int] = {}
    repeated = set()
    for i in range(start, end):
        if lines[i] in places:
            repeated.add(lines[i])
        places[lines[i]] = i
    return {line: i for line, i in places.items() if line not in repeated}


def _rising(pairs: Pairs) -> Pairs:
    """A longest subsequence of `pairs`, which rise on the left, that rises on the right too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for i, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [j]
        ends[length : length + 1] = [i]
    found: Pairs = []
    i = ends[-1] if ends else -1
    while i >= 0:
        found.append(pairs[i])
        i = before[i]
    return found[::-1]
