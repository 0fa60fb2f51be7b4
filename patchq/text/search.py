"""Every place of a run in a text, overlapping ones too, in a time that no repetition makes long.

A run that overlaps itself again and again is followed by Knuth, Morris and Pratt's method instead
of being compared anew at every place.  A text that is searched often is cut into chunks that
remember which four bytes stand in them at every fourth place, so that a search looks only where
the run can begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import AnyStr

_SCANS = 8
"""So many searches look through the whole text; for more, its chunks pay."""
_GRAM = 4
_LEAST = 2 * _GRAM - 1
"""A run of so many bytes holds four whole ones wherever it begins."""
_KEY = 256
"""So many bytes of a run tell the chunks in which it may begin."""
_CHUNKS = 64
_LEAST_CHUNK = 4096
_LARGEST = 4 << 20
"""The chunks of a larger text would take more memory than the text is worth."""


class Haystack:
    """Bytes that are searched again and again."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._searches = 0
        self._chunks: list[tuple[int, int, set[int]]] = []
        """Where each chunk begins and ends, and the fours of it and of `_KEY` bytes behind it."""

    def find(self, needle: bytes) -> Iterator[int]:
        """The offset of every place of `needle`, which is not empty, in order."""
        self._searches += 1
        if self._searches <= _SCANS or len(needle) < _LEAST or len(self.data) > _LARGEST:
            return find(self.data, needle)
        return self._find_in_chunks(needle)

    def __contains__(self, needle: bytes) -> bool:
        return next(self.find(needle), None) is not None

    def repeats(self, needle: bytes) -> bool:
        """Whether it stands at two places that do not overlap, or more."""
        places = self.find(needle) if needle else iter(())
        first = next(places, None)
        return first is not None and any(at >= first + len(needle) for at in places)

    def _find_in_chunks(self, needle: bytes) -> Iterator[int]:
        self._chunks = self._chunks or list(self._cut())
        key = needle[:_KEY]
        ways = [
            {*memoryview(key[k : len(key) - (len(key) - k) % _GRAM]).cast("I")}
            for k in range(_GRAM)
        ]
        may = {c for way in ways for c, (_, _, fours) in enumerate(self._chunks) if fours >= way}
        start = end = 0
        for first, last, _ in map(self._chunks.__getitem__, sorted(may)):
            if first != end:
                yield from find(self.data, needle, start, end)
                start = first
            end = last
        yield from find(self.data, needle, start, end)

    def _cut(self) -> Iterator[tuple[int, int, set[int]]]:
        size = len(self.data)
        fours = memoryview(self.data)[: size - size % _GRAM].cast("I").tolist()
        step = max(size // _CHUNKS, _LEAST_CHUNK) // _GRAM
        for first, last in pairwise([*range(0, len(fours), step), len(fours) + 1]):
            yield first * _GRAM, last * _GRAM, set(fours[first : last + _KEY // _GRAM])


def find(hay: AnyStr, needle: AnyStr, start: int = 0, end: int | None = None) -> Iterator[int]:
    """The offset of every place of `needle` that begins in `hay[start:end]`, in order."""
    last = len(hay) if end is None else min(end + len(needle) - 1, len(hay))
    at, before, effort = hay.find(needle, start, last), -len(needle), 0
    while at >= 0:
        if at - before < len(needle):
            effort += len(needle)
            if effort > last - start:
                yield from runs(hay, needle, at, last)
                return
        yield at
        before, at = at, hay.find(needle, at + 1, last)


def runs(
    items: Sequence[object], run: Sequence[object], start: int = 0, end: int | None = None
) -> Iterator[int]:
    """Every place of `run` in `items[start:end]`, each of the items looked at once."""
    borders = [0]
    matched = 0
    for item in run[1:]:
        while matched and item != run[matched]:
            matched = borders[matched - 1]
        matched += item == run[matched]
        borders.append(matched)
    matched = 0
    for i in range(start, len(items) if end is None else end):
        while matched and (matched == len(run) or items[i] != run[matched]):
            matched = borders[matched - 1]
        matched += items[i] == run[matched]
        if matched == len(run):
            yield i + 1 - len(run)
