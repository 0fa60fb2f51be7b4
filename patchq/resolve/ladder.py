"""One ladder for every edit that quotes whole lines: certain, or missed with what was found.

The first rung at which the quote stands decides: in one place it is taken, in several the edit is
ambiguous, unless all of them give the same bytes.  Before any rung is accepted, the text is asked
whether the edit is already there, since leniency finds the quote inside its own replacement.

A match writes only what the two halves do not share.  They are aligned as they were written; what
they share keeps the file's own bytes, so that a damaged quote is never written back; only new lines
are written, shifted as the quote was, with the file's own line end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from patchq.model.ops import Replace
from patchq.model.values import Hunk, LineHunk
from patchq.resolve.readings import Level, Lines, Quote, Unreadable, levels, quoted_lines, rewritten
from patchq.resolve.search import (
    MOST_PLACES,
    NO_SHIFT,
    Chain,
    Place,
    Shift,
    apart,
    chains,
    elides,
    indentation,
    inverse,
    places,
    shifted,
)
from patchq.text.line_diff import line_diff
from patchq.text.lines import BOM, TYPOGRAPHIC, Text


@dataclass(frozen=True, slots=True)
class Found:
    """The edit's one place: the quoted lines `start:end` (0-based), and what to write there: the
    hunks of each run of lines that it quotes without a gap."""

    rung: str
    start: int
    end: int
    runs: tuple[tuple[Hunk, ...], ...] = ()
    already: bool = False

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        return tuple(hunk for run in self.runs for hunk in run)


Why = Literal["none", "ambiguous", "unwritable", "count", "invented", "scope"]


@dataclass(frozen=True, slots=True)
class Missed:
    """No certain place; `places` are the several that it may be."""

    why: Why
    rung: str | None = None
    places: tuple[Place, ...] = ()
    detail: str = ""


Narrow = Callable[[list[Chain]], list[Chain]]
"""Keeps of several ways those that something besides the quote allows."""


def resolve(
    text: Text, op: Replace, enabled: Sequence[str], narrow: Narrow | None = None
) -> Found | Missed:
    """Where `op` belongs in `text`, by the rungs that are `enabled` (names of `readings.RUNGS`)."""
    passed: list[Step] = []
    for reading, level in _readings(_quote(op, text), enabled):
        ways = _ways(text, reading, level)
        if narrow is not None:
            ways = narrow(ways)
        if ways:
            return _judged(text, (reading, level), ways, passed)
        passed.append((reading, level))
    return Missed("none")


def resolve_many(
    text: Text,
    op: Replace,
    enabled: Sequence[str],
    pick: Callable[[list[Place]], Sequence[Place] | None],
) -> Found | Missed:
    """The same at several places: those that `pick` takes, from left to right without overlap; it
    takes none where there are too few, and gives None where there are too many."""
    for reading, level in _readings(_quote(op, text), enabled):
        if reading.rung == "elided":
            continue
        there = apart(places(text, reading, level, most=None))
        selection = pick(there)
        if selection is None:
            return Missed("count", detail=str(len(there)))
        if not selection:
            continue
        if reading.flaw:
            return Missed("unwritable", detail=reading.flaw)
        try:
            runs = tuple(
                Rewrite(place.old, place.new).at(text, place.start, place.shift)
                for place in selection
            )
        except Unreadable as error:
            return Missed("unwritable", detail=str(error))
        return Found(reading.rung or level.rung, selection[0].start, selection[-1].end, runs)
    return Missed("none")


def present(text: Text, op: Replace, enabled: Sequence[str]) -> Found | None:
    """Where the new half of `op` stands in place of the old one, which is nowhere in `text`."""
    quote = _quote(op, text)
    if not quote.new or quote.old == quote.new:
        return None
    for reading, level in _readings(quote, enabled):
        ways = _ways(text, inverse(reading), level) if _has_evidence(reading, level) else []
        if ways:
            if len(ways) > 1:
                return None
            first, last = ways[0][0], ways[0][-1]
            return Found(reading.rung or level.rung, first.start, last.end, already=True)
    return None


def inserted(text: Text, at: int, lines: Lines, ahead: bool = False) -> Found:
    """The lines put behind the first `at` lines, unless they stand there already: behind that
    point, or `ahead` of it."""
    first = at - len(lines) if ahead else at
    if lines and first >= 0 and text.contents[first : first + len(lines)] == lines:
        return Found("exact", first, first + len(lines), already=True)
    data = b"".join(line + text.line_end for line in lines)
    runs = ((Hunk(text.starts[at], text.starts[at], data),),) if lines else ()
    return Found("exact", max(at - 1, 0), at, runs)


def _quote(op: Replace, text: Text) -> Quote:
    """The two halves, without the byte order mark that the text keeps aside."""
    old, new = quoted_lines(op.old), quoted_lines(op.new)
    if not text.offset:
        return Quote(old, new)
    marks = old[:1] and old[0].startswith(BOM), new[:1] and new[0].startswith(BOM)
    old[:1] = [line.removeprefix(BOM) for line in old[:1]]
    new[:1] = [line.removeprefix(BOM) for line in new[:1]]
    flaw = "it would take the file's byte order mark away" if marks[0] and not marks[1] else None
    return Quote(old, new, flaw=flaw)


Step = tuple[Quote, Level]


def _readings(quote: Quote, enabled: Sequence[str]) -> Iterator[Step]:
    ladder = levels(tuple(enabled))
    seen = []
    for reading in rewritten(quote, enabled):
        seen.append(reading)
        for level in ladder:
            yield reading, level
    if "elided" in enabled:
        for reading in filter(elides, seen):
            for level in ladder:
                yield Quote(reading.old, reading.new, "elided", reading.flaw), level


def _ways(text: Text, quote: Quote, level: Level) -> list[Chain]:
    """Every way in which the old half stands in the text, a quote without gaps as a single piece;
    more than `MOST_PLACES` are not told apart."""
    if quote.rung == "elided":
        return chains(text, quote, level)
    return [(place,) for place in places(text, quote, level)]


def _judged(text: Text, step: Step, ways: list[Chain], passed: Sequence[Step]) -> Found | Missed:
    """What the places of a quote, found at one step, make of the edit; `passed` are the steps
    before, at which it stands nowhere."""
    quote, level = step
    rung, first = quote.rung or level.rung, ways[0]

    def missed(why: Why, detail: str = "") -> Missed:
        return Missed(why, rung, _distinct(ways), detail)

    new_chain = _new_round(text, step, ways) if len(ways) == 1 else None
    if new_chain is not None:
        if _spans(new_chain) != _spans(first) or _stands_there(text, first, passed):
            return Found(rung, new_chain[0].start, new_chain[-1].end, already=True)
        return missed("unwritable", detail="its halves differ only in what was ignored to find it")
    if quote.flaw:
        return missed("unwritable", detail=quote.flaw)
    rewrites = [Rewrite(place.old, place.new) for place in first]
    if not any(rewrite.changes for rewrite in rewrites):
        return Found(rung, first[0].start, first[-1].end)
    if len(ways) > MOST_PLACES:
        return missed("ambiguous")
    try:
        written = [_written(text, rewrites, way) for way in ways]
    except Unreadable as error:
        return missed("unwritable", detail=str(error))
    if any(not same_result(text, written[0], other) for other in written[1:]):
        return missed("ambiguous")
    if len(ways) > 1 and (new_chain := _new_round(text, step, ways)):
        return Found(rung, new_chain[0].start, new_chain[-1].end, already=True)
    return Found(rung, first[0].start, first[-1].end, written[0])


def _distinct(ways: Sequence[Chain]) -> tuple[Place, ...]:
    """The first piece's places, one for each line at which it begins."""
    return tuple({way[0].start: way[0] for way in ways}.values())


def _new_round(text: Text, step: Step, ways: Sequence[Chain]) -> Chain | None:
    """The only place of the new half, if all that was found of the old one is a part of it."""
    quote, level = step
    if not quote.new or quote.old == quote.new:
        return None
    new_chain = _ways(text, inverse(quote), level)
    if len(new_chain) == 1 and all(
        new.start <= old.start and old.end <= new.end
        for way in ways
        for old, new in zip(way, new_chain[0], strict=True)
    ):
        return new_chain[0]
    return None


def _stands_there(text: Text, way: Chain, steps: Sequence[Step]) -> bool:
    """Whether one of the steps, none of which finds the old half, finds the new one there."""
    return any(
        _spans(new) == _spans(way)
        for quote, level in steps
        for new in _ways(text, inverse(quote), level)
    )


def _spans(way: Chain) -> list[tuple[int, int]]:
    return [(place.start, place.end) for place in way]


def _written(text: Text, rewrites: Sequence[Rewrite], way: Chain) -> tuple[tuple[Hunk, ...], ...]:
    pairs = zip(rewrites, way, strict=True)
    return tuple(rewrite.at(text, place.start, place.shift) for rewrite, place in pairs)


def same_result(text: Text, one: Sequence[Sequence[Hunk]], other: Sequence[Sequence[Hunk]]) -> bool:
    """Whether two ways to change the text, neither of them empty, give the same bytes."""
    ours, theirs = ([hunk for run in runs for hunk in run] for runs in (one, other))
    start, end = min(ours[0].start, theirs[0].start), max(ours[-1].end, theirs[-1].end)
    return _replaced(text.whole, ours, start, end) == _replaced(text.whole, theirs, start, end)


def _replaced(data: bytes, changes: Sequence[Hunk], start: int, end: int) -> bytes:
    parts = []
    for hunk in changes:
        parts += [data[start : hunk.start], hunk.new]
        start = hunk.end
    return b"".join([*parts, data[start:end]])


def _has_evidence(quote: Quote, level: Level) -> bool:
    """Whether the new half keeps a line of the old one, and says something that it did not."""
    old, new = (_as_read(half, level) for half in (quote.old, quote.new))
    return any(line.strip() and line in old for line in new) and any(
        line not in old and any(map(str.isalnum, line.decode("utf-8", "replace"))) for line in new
    )


def _as_read(half: Lines, level: Level) -> set[bytes]:
    lines = level.normalise(half) if level.normalise else half
    return {line.removeprefix(indentation(line)) if level.shifts else line for line in lines}


# ---------------------------------------------------------------- what a match writes


class Rewrite:
    """How the new half of a quote differs from the old one, wherever that stands."""

    def __init__(self, old: Lines, new: Lines) -> None:
        self._old = [line.removesuffix(b"\r") for line in old]
        self._new = [line.removesuffix(b"\r") for line in new]
        self._blocks = line_diff(self._old, self._new)
        self._moved = self._movable()

    @property
    def changes(self) -> bool:
        return bool(self._blocks)

    def at(self, text: Text, start: int, shift: Shift = NO_SHIFT) -> tuple[Hunk, ...]:
        """The changes that put the new half where the old one stands, from line `start` on.

        Raises `readings.Unreadable` when a new line cannot be written there as it was meant.
        """
        curled = self._curled(text, start)
        return tuple(self._hunk(text, start, shift, block, curled) for block in self._blocks)

    def _movable(self) -> dict[bytes, int]:
        """For each quoted line the index whose bytes a new line equal to it takes: rather one that
        goes away, since then the line was moved.  An empty line is written as it is."""
        gone = {i for a0, a1, _, _ in self._blocks for i in range(a0, a1)}
        source: dict[bytes, int] = {}
        for i, line in enumerate(self._old):
            if line and (line not in source or (source[line] not in gone and i in gone)):
                source[line] = i
        return source

    def _hunk(
        self, text: Text, start: int, shift: Shift, block: LineHunk, curled: frozenset[str]
    ) -> Hunk:
        a0, a1, b0, b1 = block
        written = []
        for line in self._new[b0:b1]:
            if line in self._moved:
                written.append(text.lines[start + self._moved[line]])
            else:
                written.append(_new_line(line, shift, curled) + text.line_end)
        return Hunk(text.starts[start + a0], text.starts[start + a1], b"".join(written))

    def _curled(self, text: Text, start: int) -> frozenset[str]:
        """The typographic characters that the quote has where the file has plain ones."""
        quoted = b"\n".join(self._old)
        if quoted.isascii():
            return frozenset()
        there = b"".join(text.lines[start : start + len(self._old)])
        return typographic(quoted) - typographic(there)


def _new_line(line: bytes, shift: Shift, curled: frozenset[str]) -> bytes:
    moved = shifted(line, shift)
    if moved is None:
        raise Unreadable(
            "a new line lacks the indentation that every quoted line has too much: "
            + repr(line.decode("utf-8", "replace"))
        )
    if curled and curled & typographic(line):
        raise Unreadable(
            "a new line has typographic characters that the file has as plain ones where they are "
            "quoted: " + repr(line.decode("utf-8", "replace"))
        )
    return moved


def typographic(data: bytes) -> frozenset[str]:
    """The curly quotes, dashes and no-break spaces among the characters."""
    return TYPOGRAPHIC.intersection(data.decode("utf-8", "surrogateescape"))
