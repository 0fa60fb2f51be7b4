"""Anchor candidates of a source file, best first, for a prompt that asks for an edit script.

Definitions, imports and decorators where the language is known, and lines of any file.  The score
is the sum of uniqueness (10 for a line that occurs once, 5 for twice), proximity to a target line
(10 less a point for each line away) and distinctiveness (5 for more than five words, 3 for more
than three).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from patchq.resolve.definitions import parts

_REACH = 10
"""Lines beside the target line that are candidates themselves; without a target all of them."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate; `line` is its text without indentation, `lineno` and `end_lineno` are 1-based
    and inclusive, `count` says how often the line occurs."""

    type: str
    name: str | None
    line: str
    lineno: int
    end_lineno: int
    count: int
    score: int


def ranked(path: str, source: str, target: int | None = None) -> list[Ranked]:
    """The candidates of the file, the best first; those of equal score in the file's order."""
    lines = source.split("\n")
    counts = Counter(line.strip() for line in lines)
    found = [
        _rank(kind, name, lines, start, end, counts, target)
        for kind, name, start, end in _candidates(path, source, lines, target)
    ]
    return sorted(found, key=lambda candidate: (-candidate.score, candidate.lineno))


def _candidates(
    path: str, source: str, lines: list[str], target: int | None
) -> Iterator[tuple[str, str | None, int, int]]:
    taken = set()
    for part in parts(path, source) or ():
        taken.add(part.header)
        yield part.kind, part.name, part.header, part.end
    first, last = 0, len(lines)
    if target is not None:
        first, last = max(target - 1 - _REACH, 0), min(target + _REACH, len(lines))
    for i in range(first, last):
        if lines[i].strip() and i not in taken:
            yield "line_pattern", None, i, i + 1


def _rank(
    kind: str,
    name: str | None,
    lines: list[str],
    start: int,
    end: int,
    counts: Counter[str],
    target: int | None,
) -> Ranked:
    line = lines[start].strip()
    score = {1: 10, 2: 5}.get(counts[line], 0)
    if target is not None:
        score += max(0, 10 - abs(start + 1 - target))
    words = len(line.split())
    score += 5 if words > 5 else 3 if words > 3 else 0
    return Ranked(kind, name, line, start + 1, end, counts[line], score)
