"""A file's bytes seen as lines, without losing any of them.

A line's content excludes its end (`\n` or `\r\n`); a lone `\r` is content.  A byte order mark is
kept aside, so that a quote of the first line matches.  Everything is computed on demand and once:
one exact edit of a 50,000-line file never splits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate

BOM = b"\xef\xbb\xbf"
BLANKS = b" \t\r\f\v"

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2007\u202f", " "),
    }
)


def plain_typography(data: bytes) -> bytes:
    """Curly quotes, dashes and no-break spaces as their ASCII forms; other bytes unchanged."""
    if data.isascii():
        return data
    text = data.decode("utf-8", "surrogateescape").translate(_TYPOGRAPHY)
    return text.encode("utf-8", "surrogateescape")


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their ends; only the last may lack one.  No bytes, no lines."""
    parts = [line + b"\n" for line in data.split(b"\n")]
    last = parts.pop()[:-1]
    return [*parts, last] if last else parts


def content(line: bytes) -> bytes:
    """The line without its end."""
    line = line.removesuffix(b"\n")
    return line.removesuffix(b"\r")


class Text:
    """The bytes of one file at one moment; `body` is everything behind the byte order mark."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = len(BOM) if data.startswith(BOM) else 0
        self.body = data[self.offset :]
        self._views: dict[Callable[[list[bytes]], list[bytes]], View] = {}

    @cached_property
    def lines(self) -> list[bytes]:
        """The body's lines with their ends."""
        return split_lines(self.body)

    @cached_property
    def contents(self) -> list[bytes]:
        """The body's lines without their ends."""
        lines = self.body.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if b"\r" in self.body:
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines

    @cached_property
    def starts(self) -> list[int]:
        """Byte offset in `data` of each line's start, and of the end behind the last."""
        return list(accumulate(map(len, self.lines), initial=self.offset))

    @cached_property
    def line_end(self) -> bytes:
        """The file's most frequent line end; `\n` for a file without any."""
        crlf = self.body.count(b"\r\n")
        return b"\r\n" if crlf * 2 > self.body.count(b"\n") else b"\n"

    @property
    def lacks_final_newline(self) -> bool:
        return bool(self.body) and not self.body.endswith(b"\n")

    def line_at(self, position: int) -> int:
        """The 1-based number of the line that holds the byte at `position` of `data`."""
        return self.data.count(b"\n", 0, position) + 1

    @cached_property
    def raw_view(self) -> View:
        """The lines as they are, the `\r` of their ends included."""
        return View.of_body(self.body)

    def view(self, normalise: Callable[[list[bytes]], list[bytes]]) -> View:
        """The lines as `normalise` reads them, ready to be searched."""
        if normalise not in self._views:
            self._views[normalise] = View(normalise(self.contents))
        return self._views[normalise]


class View:
    """A list of lines that can be searched for runs of lines in linear time."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self._joined = b"\n" + b"\n".join(lines) + b"\n"

    @classmethod
    def of_body(cls, body: bytes) -> View:
        """The same over bytes that are lines already; they are not split for it."""
        view = cls([])
        view._joined = b"\n" + body + (b"" if body.endswith(b"\n") else b"\n")
        return view

    def find(self, quote: list[bytes], most: int | None = None) -> Iterator[int]:
        """Indices (0-based) of the lines at which `quote` begins; `most` bounds their number."""
        needle = b"\n" + b"\n".join(quote) + b"\n"
        position, index, counted = self._joined.find(needle), 0, 0
        while position >= 0 and most != 0:
            index += self._joined.count(b"\n", counted, position)
            counted = position
            yield index
            most = None if most is None else most - 1
            position = self._joined.find(needle, position + 1)
