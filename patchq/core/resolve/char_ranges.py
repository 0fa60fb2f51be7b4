"""The places of characters in a text, wherever in a line they begin.

They are sought at the rungs `exact`, `line_endings` and `typography`: each looks at the text
through a projection that leaves out what the rung ignores, and knows the way back to its own bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from patchq.core.resolve.search import MOST_PLACES, CharRange, LineRange
from patchq.core.text.lines import Text, find, plain_typography

MOST_RANGES = 200_000
"""More places than these are not counted, let alone replaced."""
_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)


def char_ranges(
    text: Text, sought: bytes, rungs: Collection[str]
) -> Iterator[tuple[str, list[CharRange]]]:
    """For each rung in order: every place of `sought`, overlapping ones too."""
    if not sought:
        return
    exact = _at_most(CharRange(at, at + len(sought)) for at in text.haystack.find(sought))
    yield "exact", [span for span in exact if _is_whole(text, span)]
    if {"line_endings", "typography"}.isdisjoint(rungs):
        return
    wanted = sought.replace(b"\r\n", b"\n")

    def in_text(found: Iterable[CharRange]) -> list[CharRange]:
        """In the text's own offsets; that before a line's end is before its `\r` too."""
        returns = text.flat[1]
        return [
            CharRange(*(at + bisect_right(returns, at) for at in (span.start, span.end)))
            for span in _at_most(found)
        ]

    if "line_endings" in rungs and (text.has_crlf or wanted != sought):
        yield (
            "line_endings",
            in_text(CharRange(at, at + len(wanted)) for at in text.flat_haystack.find(wanted)),
        )
    if "typography" in rungs and not (text.is_ascii and wanted.isascii()):
        chars, plain = text.plain
        needle = plain_typography(wanted)
        if plain != chars or needle != wanted:
            letters = as_letters(needle)
            found = find(plain, letters)
            yield "typography", in_text(in_bytes(chars, ((at, at + len(letters)) for at in found)))


def _at_most(found: Iterable[CharRange]) -> Iterator[CharRange]:
    return islice(found, MOST_RANGES + 1)


def _is_whole(text: Text, span: CharRange) -> bool:
    """Return True if the place neither begins nor ends inside a `\\r\\n`."""
    return all(text.part(at - 1, at + 1) != b"\r\n" for at in (span.start, span.end) if at)


def in_bytes(chars: str, places: Iterable[tuple[int, int]], start: int = 0) -> Iterator[CharRange]:
    """The places, which rise in characters, as bytes of a text in which the characters begin at
    `start`."""
    counted = 0
    for first, last in places:
        start += len(in_utf8(chars[counted:first]))
        counted = first
        yield CharRange(start, start + len(in_utf8(chars[first:last])))


def lines_at(text: Text, found: Sequence[CharRange]) -> tuple[int, int]:
    """The lines (0-based, half-open) from the first place to the last."""
    last = max(found[-1].end - 1, found[-1].start)
    return text.line_at(found[0].start) - 1, text.line_at(last)


def begun_lines(text: Text, found: Sequence[CharRange]) -> tuple[LineRange, ...]:
    """The lines on which the first places begin."""
    lines = dict.fromkeys(text.line_at(span.start) - 1 for span in found[: MOST_PLACES + 1])
    return tuple(LineRange(line, line + 1, [], []) for line in lines)


def within(text: Text, span: CharRange, before: bytes, after: bytes) -> CharRange:
    """The place between what was found of `before` and of `after`, one at each of its ends."""
    front, behind = (len(_CHARACTER.findall(as_letters(half))) for half in (before, after))
    there = _CHARACTER.findall(as_letters(text.part(span.start, span.end)))
    first, last = there[:front], there[len(there) - behind :]
    start = span.start + len(in_utf8("".join(first)))
    return CharRange(start, span.end - len(in_utf8("".join(last))))


def as_letters(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def in_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
