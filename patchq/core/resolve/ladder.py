"""Match of edits that quote whole lines: level by level, until one decides.

The first level that finds the quote decides: in one place it is taken, in several the edit is
ambiguous, unless all of them give the same bytes.  Before any name is accepted, the text is asked
whether the edit is already there, since leniency finds the quote inside its own replacement.

A match writes only what the two halves do not share.  They are aligned as they were written; what
they share keeps the file's own bytes, so that a damaged quote is never written back; only new lines
are written, shifted as the quote was, with the file's own line end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Literal

from msgspec import Struct

from patchq.core.model.ops import Replace
from patchq.core.model.values import Hunk
from patchq.core.resolve.levels import (
    EXACT,
    Level,
    Lines,
    Quote,
    Unwritable,
    match_levels,
    quoted_lines,
    rewritten,
)
from patchq.core.resolve.places import (
    MOST_PLACES,
    NO_SHIFT,
    LineRange,
    Placement,
    Shift,
    apart,
    find_lines,
    indentation,
    placements,
    shifted,
)
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import BOM, TYPOGRAPHIC, Text, content


class Found(Struct, frozen=True):
    """The place of an edit: the quoted lines `start:end`, and the hunks to write.

    Lines are 0-based.  `runs` has the hunks of each run of lines that is quoted without a gap.
    `already`: the edit is already applied.  `by_number`: only a number tells its place from others.
    """

    level: str
    start: int
    end: int
    runs: tuple[tuple[Hunk, ...], ...] = ()
    already: bool = False
    by_number: bool = False

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        return self.runs[0] if len(self.runs) == 1 else tuple(chain.from_iterable(self.runs))


Why = Literal["none", "ambiguous", "unwritable", "count", "invented"]


class Missed(Struct, frozen=True):
    """An edit without a certain place; `places` has the candidates."""

    why: Why
    level: str | None = None
    places: Sequence[LineRange] = ()
    detail: str = ""


# Keeps the placements that something besides the quote allows.
Narrow = Callable[[Sequence[Placement]], Sequence[Placement]]


def resolve(text: Text, op: Replace, enabled: Sequence[str]) -> Found | Missed:
    """Return the place of `op` by the `enabled` match levels (`levels.LEVELS`)."""
    if found := _plain(text, op):
        return found
    there = standing(text, op, enabled)
    return judged(text, there, there.placements) if there else Missed("none")


def _plain(text: Text, op: Replace) -> Found | None:
    """Return the place of a quote found exactly once; None leaves it open.

    The new half is nowhere in the text, and no line of the old half is written again.  So are most
    edits, and this is three times as fast.
    """
    if "\r" in op.old or "\r" in op.new or text.offset:
        return None
    old, new = quoted_lines(op.old), quoted_lines(op.new)
    places = find_lines(text, old, EXACT)
    start, _ = next(places, (None, None))
    if start is None or next(places, None) is not None:
        return None
    if next(find_lines(text, new, EXACT), None) is not None:
        return None
    front, least = 0, min(len(old), len(new))
    while front < least and old[front] == new[front]:
        front += 1
    behind = 0
    while behind < least - front and old[-1 - behind] == new[-1 - behind]:
        behind += 1
    written, first, last = new[front : len(new) - behind], start + front, start + len(old) - behind
    if old == new or not set(old).isdisjoint(written):
        return None
    data = b"".join([line + text.line_end for line in written])
    hunk = Hunk(text.starts[first], text.starts[last], data)
    return Found("exact", start, start + len(old), ((hunk,),))


class Standing(Struct, frozen=True):
    """The placements of a quote at the first step that finds any.

    `passed` are the steps before.
    """

    step: Step
    placements: Sequence[Placement]
    passed: Sequence[Step]


def standing(
    text: Text,
    op: Replace,
    enabled: Sequence[str],
    narrow: Narrow | None = None,
    most: int | None = MOST_PLACES + 1,
) -> Standing | None:
    """Return the first placements of the quote of `op`, at most `most` of them."""
    passed: list[Step] = []
    for step in _steps(_quote(op, text), enabled):
        found = placements(text, *step, most)
        there = narrow(found) if narrow is not None else found
        if there:
            return Standing(step, there, passed)
        passed.append(step)
    return None


def resolve_many(
    text: Text,
    op: Replace,
    enabled: Sequence[str],
    pick: Callable[[list[LineRange]], Sequence[LineRange]],
    has_too_many: Callable[[Sequence[LineRange]], bool],
) -> Found | Missed:
    """Return the places selected by `pick`, from left to right without overlap.

    `pick` returns none of them if they are too few; `has_too_many` is True for too many.
    """
    for reading, level in _steps(_quote(op, text), enabled):
        if reading.level == "elided":
            continue
        there = apart(place for (place,) in placements(text, reading, level, most=None))
        selection = pick(there)
        if has_too_many(selection):
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
        except Unwritable as error:
            return Missed("unwritable", detail=str(error))
        return Found(reading.level or level.name, selection[0].start, selection[-1].end, runs)
    return Missed("none")


def present(text: Text, op: Replace, enabled: Sequence[str]) -> Found | None:
    """Return the new half's only place, if the edit is already applied.

    The caller has found the old half in no place.
    """
    quote = _quote(op, text)
    if not quote.new or quote.old == quote.new:
        return None
    for reading, level in _steps(quote, enabled):
        there = placements(text, reading.inverse(), level) if _has_evidence(reading, level) else []
        if len(there) > 1:
            return None
        if there:
            return _already(reading.level or level.name, there[0])
    return None


def inserted(text: Text, at: int, lines: Lines, ahead: bool = False) -> Found:
    """Return the insertion after the first `at` lines, unless it is there already.

    It is looked for after that point, or `ahead` of it.
    """
    first = at - len(lines) if ahead else at
    stand = [content(line) for line in text.lines[first : first + len(lines)]] if first >= 0 else []
    if lines and stand == lines:
        return Found("exact", first, first + len(lines), already=True)
    data = b"".join(line + text.line_end for line in lines)
    runs = ((Hunk(text.starts[at], text.starts[at], data),),) if lines else ()
    return Found("exact", max(at - 1, 0), at, runs)


def _quote(op: Replace, text: Text) -> Quote:
    """Return the two halves, without the byte order mark that the text keeps apart."""
    if not text.offset:
        return Quote(quoted_lines(op.old), quoted_lines(op.new))
    halves = quoted_lines(op.old), quoted_lines(op.new)
    marks = [bool(half) and half[0].startswith(BOM) for half in halves]
    old, new = ([line.removeprefix(BOM) for line in half[:1]] + half[1:] for half in halves)
    flaw = "it would take the file's byte order mark away" if marks[0] and not marks[1] else None
    return Quote(old, new, flaw=flaw)


Step = tuple[Quote, Level]


def _steps(quote: Quote, enabled: Sequence[str]) -> Iterator[Step]:
    ladder = match_levels(tuple(enabled))
    for reading in rewritten(quote, enabled):
        for level in ladder:
            yield reading, level


def judged(text: Text, standing: Standing, there: Sequence[Placement]) -> Found | Missed:
    """Return the edit's place if the placements allow one, else the reason why not."""
    step, passed = standing.step, standing.passed
    quote, level = step
    name, first = quote.level or level.name, there[0]
    new_chain = _new_round(text, step, there) if len(there) == 1 else None
    if new_chain is not None:
        own = _spans(new_chain)
        if own != _spans(first) or any(
            _spans(placement) == own
            for q, finer in passed
            for placement in placements(text, q.inverse(), finer)
        ):
            return _already(name, new_chain)
        detail = "its halves differ only in what was ignored to find it"
        return _missed("unwritable", name, there, detail)
    if quote.flaw:
        return _missed("unwritable", name, there, quote.flaw)
    rewrites = [Rewrite(place.old, place.new) for place in first]
    if not any(rewrite.blocks for rewrite in rewrites):
        return Found(name, first[0].start, first[-1].end)
    if len(there) > MOST_PLACES:
        return _missed("ambiguous", name, there)
    try:
        made = _written(text, rewrites, first)
        for placement in islice(there, 1, None):
            if not same_result(text, made, _written(text, rewrites, placement)):
                return _missed("ambiguous", name, there)
    except Unwritable as error:
        return _missed("unwritable", name, there, str(error))
    if len(there) > 1 and (new_chain := _new_round(text, step, there)):
        return _already(name, new_chain)
    return Found(name, first[0].start, first[-1].end, made)


def _missed(why: Why, name: str, there: Sequence[Placement], detail: str = "") -> Missed:
    places = {placement[0].start: placement[0] for placement in there}
    return Missed(why, name, tuple(places.values()), detail)


def _written(
    text: Text, rewrites: Sequence[Rewrite], placement: Placement
) -> tuple[tuple[Hunk, ...], ...]:
    segments = zip(rewrites, placement, strict=True)
    return tuple([rewrite.at(text, place.start, place.shift) for rewrite, place in segments])


def _new_round(text: Text, step: Step, there: Sequence[Placement]) -> Placement | None:
    """Return the new half's only placement, if it contains all of the old's."""
    quote, level = step
    if not quote.new or quote.old == quote.new:
        return None
    whole = quote.level != "elided" and not level.edges
    if whole and next(find_lines(text, quote.new, level), None) is None:  # as of most edits
        return None
    new_chain = placements(text, quote.inverse(), level)
    if len(new_chain) == 1 and all(
        new.start <= old.start and old.end <= new.end
        for placement in there
        for old, new in zip(placement, new_chain[0], strict=True)
    ):
        return new_chain[0]
    return None


def _already(name: str, placement: Placement) -> Found:
    return Found(name, placement[0].start, placement[-1].end, already=True)


def _spans(placement: Placement) -> list[tuple[int, int]]:
    return [(place.start, place.end) for place in placement]


def same_result(text: Text, one: Sequence[Sequence[Hunk]], other: Sequence[Sequence[Hunk]]) -> bool:
    """Return True if two changes of the text, neither empty, give the same bytes."""
    ours, theirs = ([hunk for run in runs for hunk in run] for runs in (one, other))
    start, end = min(ours[0].start, theirs[0].start), max(ours[-1].end, theirs[-1].end)
    return replaced(text.whole, ours, start, end) == replaced(text.whole, theirs, start, end)


def replaced(data: bytes, hunks: Iterable[Hunk], start: int, end: int) -> bytes:
    """Return the bytes `start:end` with the hunks, which are in order, applied."""
    parts = []
    for hunk in hunks:
        parts += [data[start : hunk.start], hunk.new]
        start = hunk.end
    return b"".join([*parts, data[start:end]])


def _has_evidence(quote: Quote, level: Level) -> bool:
    """Return True if the new half keeps an old line and has new text."""
    old, new = (
        {
            line.removeprefix(indentation(line)) if level.shifts else line
            for line in (level.normalise(half) if level.normalise else half)
        }
        for half in (quote.old, quote.new)
    )
    added = b"".join(new - old).decode("utf-8", "replace")
    return any(line.strip() for line in new & old) and any(map(str.isalnum, added))


# ---------------------------------------------------------------- what a match writes


class Rewrite:
    """The difference between a quote's two halves, to apply at any place."""

    def __init__(self, old: Lines, new: Lines) -> None:
        self._old = [line.removesuffix(b"\r") for line in old]
        self._new = [line.removesuffix(b"\r") for line in new]
        self.blocks = line_diff(self._old, self._new)
        written = {line for _, _, b0, b1 in self.blocks for line in self._new[b0:b1]}
        self._moved = {} if written.isdisjoint(self._old) else self._indices()

    def _indices(self) -> dict[bytes, int]:
        """Return for each quoted line the index whose bytes an equal new line takes.

        One that goes away comes first, since then the line was moved.  An empty line has none.
        """
        gone = {i for a0, a1, _, _ in self.blocks for i in range(a0, a1)}
        moved: dict[bytes, int] = {}
        for i, line in enumerate(self._old):
            if line and (line not in moved or (moved[line] not in gone and i in gone)):
                moved[line] = i
        return moved

    def at(self, text: Text, start: int, shift: Shift = NO_SHIFT) -> tuple[Hunk, ...]:
        """Return the hunks that replace the old half at line `start`.

        Raises `levels.Unwritable` when a new line cannot be written there as it was meant.
        """
        # The typographic characters that the quote has where the file has plain ones.
        curled = typographic(b"\n".join(self._old))
        if curled:
            curled -= typographic(b"".join(text.lines[start : start + len(self._old)]))
        starts, end, moved = text.starts, text.line_end, self._moved
        hunks = []
        for a0, a1, b0, b1 in self.blocks:
            new = [
                text.lines[start + moved[line]]
                if line in moved
                else _new_line(line, shift, curled) + end
                for line in self._new[b0:b1]
            ]
            hunks.append(Hunk(starts[start + a0], starts[start + a1], b"".join(new)))
        return tuple(hunks)


def _new_line(line: bytes, shift: Shift, curled: frozenset[str]) -> bytes:
    moved = line if shift is NO_SHIFT else shifted(line, shift)
    if moved is None:
        raise Unwritable(
            "a new line lacks the indentation that every quoted line has too much: "
            + repr(line.decode("utf-8", "replace"))
        )
    if curled and curled & typographic(line):
        raise Unwritable(
            "a new line has typographic characters that the file has as plain ones where they are "
            "quoted: " + repr(line.decode("utf-8", "replace"))
        )
    return moved


def typographic(data: bytes) -> frozenset[str]:
    """Return the curly quotes, dashes and no-break spaces among the characters."""
    if data.isascii():
        return frozenset()
    return TYPOGRAPHIC.intersection(data.decode("utf-8", "surrogateescape"))
