"""A file's bytes seen as lines, without losing any of them.

A line's content excludes its end (`\n` or `\r\n`); a lone `\r` is content.  A byte order mark is
kept aside, so that a quote of the first line matches.  A last line without its end is given one for
as long as the text is worked on, so that every line is whole.  Everything is computed on demand and
once.

Every place of a run is found, overlapping ones too, in a time that no repetition makes long.  A run
that overlaps itself again and again is followed by Knuth, Morris and Pratt's method instead of
being compared anew at every place.  A text that is searched often is cut into chunks that remember
which four bytes stand in them at every fourth place, so that a search looks only where the run can
begin.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from itertools import accumulate, pairwise
from typing import AnyStr

BOM = b"\xef\xbb\xbf"
BLANKS = b" \t\r\f\v"
Normalise = Callable[[list[bytes]], list[bytes]]
# The last place of each line, and all places of those that stand there more than once.
LineIndex = tuple[dict[bytes, int], dict[bytes, list[int]]]

_ANY_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)")
# So many searches look through the whole text; for more it pays to know where each line of a view
# is, and what the chunks of a haystack hold.
SCANS = 8
_FEW = 64
_SCAN = 8  # to look through the whole text takes as long as to look at one line of so many
_GRAM = 4
_LEAST = 2 * _GRAM - 1  # a run of so many bytes holds four whole ones wherever it begins
_KEY = 256  # so many bytes of a run tell the chunks in which it may begin
_CHUNKS = 64
_LEAST_CHUNK = 4096
_LARGEST = 4 << 20  # the chunks of a larger text would take more memory than the text is worth

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2007\u202f", " "),
    }
)
TYPOGRAPHIC = frozenset(map(chr, _TYPOGRAPHY))


def plain_typography(data: bytes) -> bytes:
    """Return curly quotes, dashes and no-break spaces as their ASCII forms.

    Other bytes are unchanged.
    """
    if data.isascii():
        return data
    text = data.decode("utf-8", "surrogateescape").translate(_TYPOGRAPHY)
    return text.encode("utf-8", "surrogateescape")


def bare(lines: list[bytes]) -> list[bytes]:
    """Return lines without blanks and ends round them, and with plain typography."""
    if not all(map(bytes.isascii, lines)):
        lines = list(map(plain_typography, lines))
    return [line.strip() for line in lines]


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of `data` with their ends, which the last may lack."""
    return BytesIO(data).readlines()  # to `splitlines` a lone return would be an end, too


def content(line: bytes) -> bytes:
    """Return the line without its end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


class Text:
    """The bytes of one file at one moment.

    `whole` is `data` with its last line ended; all offsets are those of `whole`.
    """

    def __init__(self, data: bytes, *, returns: bool = False, searches: int = 0) -> None:
        self.data = data
        self._returns = returns  # true if a lone `\r` ends a line, too
        self._searches = searches  # so often its lines are going to be searched
        self.offset = len(BOM) if data.startswith(BOM) else 0
        self._views: dict[Normalise, View] = {}

    @cached_property
    def line_end(self) -> bytes:
        """The file's most frequent line end, or `\\n` if it has none."""
        pairs = self.data.count(b"\r\n") if b"\r" in self.data else 0
        every = self.data.count(b"\n")
        if self._returns and self.data.count(b"\r") - pairs > every:
            return b"\r"
        return b"\r\n" if pairs * 2 > every else b"\n"

    @property
    def lacks_final_newline(self) -> bool:
        return len(self.data) > self.offset and not self.data.endswith(b"\n")

    @cached_property
    def whole(self) -> bytes:
        if not self.lacks_final_newline:
            return self.data
        return self.data + (b"\n" if self.data.endswith(b"\r") else self.line_end)

    def restored(self, whole: bytes) -> bytes:
        """Return a changed `whole`, its final newline missing if it is missing from `data`."""
        if not self.lacks_final_newline:
            return whole
        return whole.removesuffix(b"\n") if self.data.endswith(b"\r") else content(whole)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the bytes from and to of the lines `start:end` (0-based)."""
        return self.starts[start], self.starts[end]

    @cached_property
    def is_utf8(self) -> bool:
        return is_utf8(self.data)

    @cached_property
    def has_crlf(self) -> bool:
        return b"\r" in self.whole and b"\r\n" in self.whole

    @cached_property
    def with_returns(self) -> Text | None:
        """The text with a lone `\\r` as an end, or None without one."""
        lone = not self._returns and self.data.count(b"\r") > self.data.count(b"\r\n")
        return Text(self.whole, returns=True) if lone else None

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines with their ends."""
        body = self.whole[self.offset :]
        return _ANY_LINE.findall(body) if self._returns else split_lines(body)

    @cached_property
    def contents(self) -> list[bytes]:
        """The lines without their ends."""
        return [content(line) for line in self.lines]

    @cached_property
    def starts(self) -> list[int]:
        """Offset in `whole` of each line's start, and of the end behind the last."""
        return list(accumulate(map(len, self.lines), initial=self.offset))

    def line_at(self, position: int) -> int:
        """Return the 1-based number of the line that holds the byte at `position`."""
        return max(bisect_right(self.starts, position), 1)

    @cached_property
    def flat(self) -> tuple[bytes, list[int]]:
        """Return `whole` with each `\\r\\n` as `\\n`, and the offsets behind those."""
        if not self.has_crlf:
            return self.whole, []
        parts = self.whole.split(b"\r\n")
        return b"\n".join(parts), list(accumulate(len(p) + 1 for p in parts[:-1]))

    @cached_property
    def haystack(self) -> Haystack:
        """`whole`, to be searched."""
        return Haystack(self.whole)

    @cached_property
    def flat_haystack(self) -> Haystack:
        """The bytes of `flat`, to be searched."""
        flat = self.flat[0]
        return self.haystack if flat is self.whole else Haystack(flat)

    @cached_property
    def plain(self) -> tuple[str, str]:
        """The characters of `flat`, and as many with plain typography."""
        chars = self.flat[0].decode("utf-8", "surrogateescape")
        return chars, chars.translate(_TYPOGRAPHY)

    def quoted(self, start: int, end: int) -> list[bytes]:
        """Return the lines `start:end` as a quote has them, without `\\n`."""
        lines = self.lines[start:end]
        return [content(line) if self._returns else line[:-1] for line in lines]

    def view(self, read: Normalise) -> View:
        """Return the lines as `read` makes them of lines with their ends."""
        if read not in self._views:
            self._views[read] = View(read(self.lines), self._searches)
        return self._views[read]


class View:
    """Lines that can be searched for runs of lines.

    A search takes no longer where lines repeat.
    """

    def __init__(self, lines: list[bytes], searches: int = 0) -> None:
        self.lines = lines
        self._searches = searches if searches > SCANS else 0

    @cached_property
    def _joined(self) -> bytes:
        return b"\n".join([b"", *self.lines, b""])

    @cached_property
    def _index(self) -> LineIndex:
        """Return the places of all lines.

        Most lines occur once, and a list for each would cost too much.
        """
        last = dict(zip(self.lines, range(len(self.lines)), strict=True))
        counts = Counter(self.lines) if len(last) < len(self.lines) else Counter[bytes]()
        repeated: dict[bytes, list[int]] = {line: [] for line, n in counts.items() if n > 1}
        for i, line in enumerate(self.lines) if repeated else ():
            if line in repeated:
                repeated[line].append(i)
        return last, repeated

    def find(self, quote: list[bytes]) -> Iterator[int]:
        """Yield the index (0-based) of every line at which `quote` begins, in order."""
        self._searches += 1
        if self._searches <= SCANS:
            return self._scan(quote)
        last, repeated = self._index
        if not all(map(last.__contains__, quote)):
            return iter(())
        places = enumerate(repeated.get(line) or (last[line],) for line in quote[:_FEW])
        rarest, at = min(places, key=lambda place: len(place[1]))
        if len(at) > _FEW and len(at) * len(quote) > len(self.lines) // _SCAN:
            return self._scan(quote)
        starts, size = (i - rarest for i in at), len(quote)
        return (i for i in starts if i >= 0 and self.lines[i : i + size] == quote)

    def _scan(self, quote: list[bytes]) -> Iterator[int]:
        needle = b"\n".join([b"", *quote, b""])
        index = counted = 0
        for position in find(self._joined, needle):
            index += self._joined.count(b"\n", counted, position)
            counted = position
            yield index


# ---------------------------------------------------------------- searching


class Haystack:
    """Bytes that are searched again and again."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._searches = 0
        # Where each chunk begins and ends, and the fours of it and of `_KEY` bytes behind it.
        self._chunks: list[tuple[int, int, set[int]]] = []

    def find(self, needle: bytes) -> Iterator[int]:
        """Yield the offset of every place of the non-empty `needle`, in order."""
        self._searches += 1
        if self._searches <= SCANS or len(needle) < _LEAST or len(self.data) > _LARGEST:
            return find(self.data, needle)
        return self._find_in_chunks(needle)

    def repeats(self, needle: bytes) -> bool:
        """Return whether it is at two places that do not overlap, or more."""
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
    """Yield the offset of every place of `needle` that begins in `hay[start:end]`, in order."""
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
    """Yield every place of `run` in `items[start:end]`.

    Each of the items is looked at once.
    """
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
