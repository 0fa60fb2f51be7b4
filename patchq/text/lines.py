"""A file's bytes seen as lines, without losing any of them.

A line's content excludes its end (`\n` or `\r\n`); a lone `\r` is content.  A byte order mark is
kept aside, so that a quote of the first line matches.  A last line without its end is given one for
as long as the text is worked on, so that every line is whole.  Everything is computed on demand and
once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from patchq.text.search import Haystack, find

BOM = b"\xef\xbb\xbf"
BLANKS = b" \t\r\f\v"
Normalise = Callable[[list[bytes]], list[bytes]]

_ANY_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)")
_SCANS = 8
"""So many searches of a view scan it; for more it pays to know where each line stands."""
_FEW = 64

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
    """Curly quotes, dashes and no-break spaces as their ASCII forms; other bytes unchanged."""
    if data.isascii():
        return data
    text = data.decode("utf-8", "surrogateescape").translate(_TYPOGRAPHY)
    return text.encode("utf-8", "surrogateescape")


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their ends; only the last may lack one.  No bytes, no lines."""
    if b"\r" not in data:  # which `splitlines`, several times as fast, takes for an end too
        return data.splitlines(keepends=True)
    parts = [line + b"\n" for line in data.split(b"\n")]
    last = parts.pop()[:-1]
    return [*parts, last] if last else parts


def content(line: bytes) -> bytes:
    """The line without its end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


class Text:
    """The bytes of one file at one moment, `data`, and the same with its last line ended, `whole`:
    all offsets are those of `whole`."""

    def __init__(self, data: bytes, *, returns: bool = False) -> None:
        self.data = data
        self._returns = returns
        self.offset = len(BOM) if data.startswith(BOM) else 0
        self._views: dict[Normalise, View] = {}

    @cached_property
    def line_end(self) -> bytes:
        """The file's most frequent line end; `\n` for a file without any."""
        crlf = self.data.count(b"\r\n")
        return b"\r\n" if crlf * 2 > self.data.count(b"\n") else b"\n"

    @property
    def lacks_final_newline(self) -> bool:
        return len(self.data) > self.offset and not self.data.endswith(b"\n")

    @cached_property
    def whole(self) -> bytes:
        if not self.lacks_final_newline:
            return self.data
        return self.data + (b"\n" if self.data.endswith(b"\r") else self.line_end)

    def restored(self, whole: bytes) -> bytes:
        """What became of `whole`, its final newline missing if it is missing from `data`."""
        if not self.lacks_final_newline:
            return whole
        return whole.removesuffix(b"\n") if self.data.endswith(b"\r") else content(whole)

    @cached_property
    def with_returns(self) -> Text | None:
        """The same text with a lone `\r` as the end of a line too; None if it has none."""
        if self._returns or self.data.count(b"\r") == self.data.count(b"\r\n"):
            return None
        return Text(self.data, returns=True)

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
        """The 1-based number of the line that holds the byte at `position`."""
        return max(bisect_right(self.starts, position), 1)

    @cached_property
    def flat(self) -> tuple[bytes, list[int]]:
        """`whole` with every `\r\n` as `\n`, and the offsets behind those `\n`."""
        if b"\r\n" not in self.whole:
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
        """The characters of `flat`, and the same, one for one, with plain typography."""
        chars = self.flat[0].decode("utf-8", "surrogateescape")
        return chars, chars.translate(_TYPOGRAPHY)

    def view(self, normalise: Normalise | None = None) -> View:
        """The lines as `normalise` reads them, given those without their `\n`; None: unchanged."""
        if normalise is None:
            return self._raw_view
        if normalise not in self._views:
            self._views[normalise] = View.of_lines(normalise(self._raw_view.lines))
        return self._views[normalise]

    @cached_property
    def _raw_view(self) -> View:
        if self._returns:
            return View.of_lines(self.contents)
        return View(b"\n" + self.whole[self.offset :])


class View:
    """Lines that can be searched for runs of lines, in a time that does not grow with what they
    repeat.  `joined` has a `\n` in front of every line, and one at the end."""

    def __init__(self, joined: bytes) -> None:
        self._joined = joined
        self._searches = 0

    @classmethod
    def of_lines(cls, lines: list[bytes]) -> View:
        view = cls(b"\n".join([b"", *lines, b""]))
        view.lines = lines
        return view

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines without their `\n`; not needed, and not made, for a few searches."""
        return self._joined[1:-1].split(b"\n") if len(self._joined) > 1 else []

    @cached_property
    def _places(self) -> dict[bytes, list[int]]:
        places: dict[bytes, list[int]] = {}
        for i, line in enumerate(self.lines):
            places.setdefault(line, []).append(i)
        return places

    def where(self, line: bytes) -> Sequence[int]:
        """The indices (0-based) of all lines that are equal to `line`."""
        return self._places.get(line, ())

    def find(self, quote: list[bytes]) -> Iterator[int]:
        """The index (0-based) of every line at which `quote` begins, in order."""
        self._searches += 1
        if self._searches > _SCANS:
            rarest = min(range(len(quote)), key=lambda k: len(self.where(quote[k])))
            at = self.where(quote[rarest])
            if len(at) <= _FEW:
                starts = (i - rarest for i in at if i >= rarest)
                return (i for i in starts if self.lines[i : i + len(quote)] == quote)
        return self._scan(quote)

    def _scan(self, quote: list[bytes]) -> Iterator[int]:
        needle = b"\n".join([b"", *quote, b""])
        index = counted = 0
        for position in find(self._joined, needle):
            index += self._joined.count(b"\n", counted, position)
            counted = position
            yield index
