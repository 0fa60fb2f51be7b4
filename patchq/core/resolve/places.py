"""The places of a quote in a text at one match level.

Runs of lines are looked for as the loosest level reads them, without blanks round them; whether a
finer one reads them alike as well, and how far they are shifted, is seen at each place.

At the level `elided` a `...` line in both halves replaces lines that both leave out.  The quote is
then several segments, in order, all of them shifted alike.  A segment that changes may have several
places; every combination of them is a placement of its own, so that the caller can judge by what
they write.

Characters are sought at the levels `exact`, `line_endings` and `typography`: each looks at the text
through a projection that leaves out what the level ignores, and knows the way back to its bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from patchq.core.resolve.levels import Level, Lines, Quote, segments
from patchq.core.text.lines import Text, bare, plain_typography
from patchq.core.text.lines import find as find_text

MOST_PLACES = 50  # more places than these are not distinguished; every report says at most so many
_MOST_EDGE_BLANKS = 4
_INDENTATION = b" \t"


class Shift(Struct, frozen=True):
    """The indentation that the text has more (`added`) or less (`removed`) than the quote."""

    added: bytes = b""
    removed: bytes = b""


NO_SHIFT = Shift()


class CharRange(Struct, frozen=True):
    """The bytes `start:end` of `Text.whole`."""

    start: int
    end: int


class LineRange(Struct, frozen=True):
    """The lines `start:end` (0-based, half-open), read as the quote's `old` and `new`."""

    start: int
    end: int
    old: Lines
    new: Lines
    shift: Shift = NO_SHIFT


S = TypeVar("S", CharRange, LineRange)

Placement = tuple[LineRange, ...]  # a place for each segment of a quote, front to back


def placements(
    text: Text, quote: Quote, level: Level, most: int | None = MOST_PLACES + 1
) -> list[Placement]:
    """Return the placements of `quote.old`; without gaps each has one segment.

    One more than `MOST_PLACES` means that there are more.  Placements differ in segments that
    change only.  Blank lines at the edges are given up, in pairs, only if it is nowhere with them.
    """
    for old, new in edges(quote) if level.edges else ((quote.old, quote.new),):
        if quote.level == "elided":
            found = list(islice(_placements(text, old, new, level), most))
        else:
            size = len(old)
            found = [
                (LineRange(start, start + size, old, new, shift),)
                for start, shift in islice(find_lines(text, old, level), most)
            ]
        if found:
            return found
    return []


def apart(found: Iterable[S]) -> list[S]:
    """Return the places that overlap no earlier one, from left to right."""
    kept: list[S] = []
    for span in found:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def edges(quote: Quote) -> Iterator[tuple[Lines, Lines]]:
    """Yield both halves with more and more blank lines dropped at their edges.

    First none, then in front, at the end, and at both.
    """
    old, new = quote.old, quote.new
    front = range(1, _droppable(old, new) + 1)
    behind = range(1, _droppable(old[::-1], new[::-1]) + 1)
    drops = [(0, 0), *((k, 0) for k in front), *((0, k) for k in behind)]
    drops += [(i, k) for i in front for k in behind if not new or i + k <= len(new)]
    for i, k in drops:
        yield old[i : len(old) - k], new[i : len(new) - k] if new else new


def _droppable(old: Lines, new: Lines) -> int:
    if not any(line.strip() for line in old):
        return 0
    return min(_MOST_EDGE_BLANKS, *map(_leading_blanks, [old, new] if new else [old]))


def _leading_blanks(lines: Lines) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def find_lines(text: Text, quote: Lines, level: Level) -> Iterator[tuple[int, Shift]]:
    """Yield the 0-based line and the shift of every place at which `quote` begins."""
    wanted = level.normalise(quote) if level.normalise else quote
    shifts: dict[tuple[bytes, ...], Shift | None] = {}
    for i in text.view(bare).find(bare(quote)) if quote else ():
        lines = tuple(text.lines[i : i + len(quote)])
        if lines not in shifts:
            there = text.quoted(i, i + len(quote))
            read = level.normalise(there) if level.normalise else there
            shifts[lines] = _shift(wanted, read, level)
        if shift := shifts[lines]:
            yield i, shift


def _shift(quote: Lines, there: Lines, level: Level) -> Shift | None:
    """Return the indentation shift of all lines; None if they differ in more."""
    first = _leading_blanks(quote)
    if not level.shifts or first == len(quote):
        return NO_SHIFT if quote == there else None
    shift = _shift_between(indentation(quote[first]), indentation(there[first]))
    return shift if shift and [shifted(line, shift) for line in quote] == there else None


def _shift_between(ours: bytes, theirs: bytes) -> Shift | None:
    if theirs.endswith(ours):
        return Shift(added=theirs[: len(theirs) - len(ours)])
    if ours.endswith(theirs):
        return Shift(removed=ours[: len(ours) - len(theirs)])
    return None


def indentation(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(_INDENTATION))]


def shifted(line: bytes, shift: Shift) -> bytes | None:
    """Return the quoted line in the text's indentation; None if it has too little."""
    if not line.strip():
        return line
    if not line.startswith(shift.removed):
        return None
    return shift.added + line[len(shift.removed) :]


# ---------------------------------------------------------------- lines left out


class _Segment(Struct, frozen=True):
    old: Lines
    new: Lines
    starts: list[int]  # the lines at which it is, in order


def _placements(text: Text, old: Lines, new: Lines, level: Level) -> Iterator[Placement]:
    old_segments, new_segments = segments(old), segments(new)
    if any(next(iter(find_lines(text, segment, level)), None) is None for segment in old_segments):
        return
    found = [_by_shift(text, segment, level) for segment in old_segments]
    shown = next(i for i, segment in enumerate(old_segments) if any(map(bytes.strip, segment)))
    for shift in found[shown]:
        chain: list[_Segment] = []
        limit = len(text.lines)
        for o, n, starts in reversed([*zip(old_segments, new_segments, found, strict=True)]):
            there = starts.get(shift if any(map(bytes.strip, o)) else NO_SHIFT, [])
            there = there[: bisect_right(there, limit - len(o))]
            limit = there[-1] if there else -1  # what is before has to end here
            chain.insert(0, _Segment(o, n, there))
        for succession in islice(_successions(chain), MOST_PLACES + 1):
            yield tuple(
                LineRange(start, start + len(segment.old), segment.old, segment.new, shift)
                for start, segment in zip(succession, chain, strict=True)
            )


def _by_shift(text: Text, segment: Lines, level: Level) -> dict[Shift, list[int]]:
    starts: dict[Shift, list[int]] = {}
    for start, shift in find_lines(text, segment, level):
        starts.setdefault(shift, []).append(start)
    return starts


def _successions(chain: Sequence[_Segment], low: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the starts of the segments, in every order that they allow.

    The first is on line `low` or behind.  A segment without a change takes its first place after
    the one before.
    """
    if not chain:
        yield ()
        return
    segment, rest = chain[0], chain[1:]
    first = bisect_left(segment.starts, low)
    last = first + 1 if segment.old == segment.new else None
    for start in segment.starts[first:last]:
        for behind in _successions(rest, start + len(segment.old)):
            yield (start, *behind)


MOST_RANGES = 200_000  # more places than these are not counted, let alone replaced
_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)


def char_ranges(
    text: Text, sought: bytes, levels: Collection[str]
) -> Iterator[tuple[str, list[CharRange]]]:
    """Yield for each level in order every place of `sought`, overlapping ones included."""
    if not sought:
        return
    exact = _at_most(CharRange(at, at + len(sought)) for at in text.haystack.find(sought))
    yield "exact", [span for span in exact if _is_whole(text, span)]
    if {"line_endings", "typography"}.isdisjoint(levels):
        return
    wanted = sought.replace(b"\r\n", b"\n")

    def in_text(found: Iterable[CharRange]) -> list[CharRange]:
        returns = text.flat[1]
        return [
            CharRange(*(at + bisect_right(returns, at) for at in (span.start, span.end)))
            for span in _at_most(found)
        ]

    if "line_endings" in levels and (text.has_crlf or wanted != sought):
        yield (
            "line_endings",
            in_text(CharRange(at, at + len(wanted)) for at in text.flat_haystack.find(wanted)),
        )
    if "typography" in levels and not (text.data.isascii() and wanted.isascii()):
        chars, plain = text.plain
        needle = plain_typography(wanted)
        if plain != chars or needle != wanted:
            letters = as_letters(needle)
            found = find_text(plain, letters)
            yield "typography", in_text(in_bytes(chars, ((at, at + len(letters)) for at in found)))


def _at_most(found: Iterable[CharRange]) -> Iterator[CharRange]:
    return islice(found, MOST_RANGES + 1)


def _is_whole(text: Text, span: CharRange) -> bool:
    return all(text.whole[at - 1 : at + 1] != b"\r\n" for at in (span.start, span.end) if at)


def in_bytes(chars: str, places: Iterable[tuple[int, int]], start: int = 0) -> Iterator[CharRange]:
    """Yield rising ranges of characters in `chars` as ranges of bytes.

    `start` is the byte offset of `chars` in the text.
    """
    counted = 0
    for first, last in places:
        start += len(in_utf8(chars[counted:first]))
        counted = first
        yield CharRange(start, start + len(in_utf8(chars[first:last])))


def lines_at(text: Text, found: Sequence[CharRange]) -> tuple[int, int]:
    """Return the lines (0-based, half-open) from the first place to the last."""
    last = max(found[-1].end - 1, found[-1].start)
    return text.line_at(found[0].start) - 1, text.line_at(last)


def begun_lines(text: Text, found: Sequence[CharRange]) -> tuple[LineRange, ...]:
    """Return the lines on which the first places begin."""
    lines = dict.fromkeys(text.line_at(span.start) - 1 for span in found[: MOST_PLACES + 1])
    return tuple(LineRange(line, line + 1, [], []) for line in lines)


def within(text: Text, span: CharRange, before: bytes, after: bytes) -> CharRange:
    """Return the part of `span` between `before` and `after`, which are at its ends."""
    front, behind = (len(_CHARACTER.findall(as_letters(half))) for half in (before, after))
    there = _CHARACTER.findall(as_letters(text.whole[span.start : span.end]))
    first, last = there[:front], there[len(there) - behind :]
    start = span.start + len(in_utf8("".join(first)))
    return CharRange(start, span.end - len(in_utf8("".join(last))))


def as_letters(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def in_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
