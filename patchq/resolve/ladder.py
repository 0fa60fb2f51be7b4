"""One ladder for every edit that quotes whole lines: certain, or missed with what was found.

The first rung at which the quote stands decides: in one place it is taken, in several the edit is
ambiguous, unless all of them give the same bytes.  Before any rung is accepted, the text is asked
whether the edit is already there, since leniency finds the quote inside its own replacement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from patchq.model import Hunk, Replace
from patchq.resolve import elide
from patchq.resolve.preserve import hunks
from patchq.resolve.readings import Level, Lines, Quote, Unreadable, levels, rewritten
from patchq.resolve.search import Place, places
from patchq.text import Text

_WORD = re.compile(rb"\w")


@dataclass(frozen=True, slots=True)
class Found:
    """The edit's one place: `hunks` to write, and the quoted lines `start:end` (0-based)."""

    rung: str
    hunks: tuple[Hunk, ...]
    start: int
    end: int
    already: bool = False


@dataclass(frozen=True, slots=True)
class Missed:
    """No certain place; `places` are the several that it may be."""

    why: Literal["none", "ambiguous", "unshiftable"]
    rung: str | None = None
    places: tuple[Place, ...] = ()
    detail: str = ""


def resolve(text: Text, op: Replace, enabled: Sequence[str]) -> Found | Missed:
    """Where `op` belongs in `text`, by the rungs that are `enabled` (names of `readings.RUNGS`)."""
    quote = Quote(_lines(op.old), _lines(op.new))
    try:
        for reading, level in _readings(quote, enabled):
            found = _at(text, reading, level)
            if found is not None:
                return found
        return _already_elsewhere(text, quote, enabled) or Missed("none")
    except Unreadable as error:
        return Missed("unshiftable", detail=str(error))


def _lines(half: str) -> Lines:
    lines = half.encode("utf-8", "surrogateescape").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _readings(quote: Quote, enabled: Sequence[str]) -> Iterator[tuple[Quote, Level]]:
    ladder = list(levels(enabled))
    seen = []
    for reading in rewritten(quote, enabled):
        seen.append(reading)
        for level in ladder:
            yield reading, level
    if "elided" in enabled:
        for reading in filter(elide.elides, seen):
            for level in ladder:
                yield Quote(reading.old, reading.new, "elided"), level


def _at(text: Text, quote: Quote, level: Level) -> Found | Missed | None:
    if quote.rung == "elided":
        return _at_chain(text, quote, level)
    found = places(text, quote, level)
    if not found:
        return None
    rung = quote.rung or level.rung
    if len(found) == 1 and quote.old != quote.new:
        fresh = places(text, elide.inverse(quote), level) if quote.new else []
        if len(fresh) == 1 and fresh[0].start <= found[0].start and found[0].end <= fresh[0].end:
            return Found(rung, (), fresh[0].start, fresh[0].end, already=True)
    written = [hunks(text, place) for place in found]
    if any(not _same_result(text, written[0], other) for other in written[1:]):
        return Missed("ambiguous", rung, tuple(found))
    return Found(rung, written[0], found[0].start, found[0].end)


def _at_chain(text: Text, quote: Quote, level: Level) -> Found | Missed | None:
    chain = elide.chain(text, quote, level)
    if chain is None:
        return None
    if not chain.certain:
        return Missed("ambiguous", "elided", chain.places[:1])
    start, end = chain.places[0].start, chain.places[-1].end
    fresh = elide.chain(text, elide.inverse(quote), level) if quote.old != quote.new else None
    if fresh and fresh.certain and _inside(chain.places, fresh.places):
        return Found("elided", (), start, end, already=True)
    written = tuple(hunk for place in chain.places for hunk in hunks(text, place))
    return Found("elided", written, start, end)


def _inside(old: Sequence[Place], new: Sequence[Place]) -> bool:
    return all(n.start <= o.start and o.end <= n.end for o, n in zip(old, new, strict=True))


def _same_result(text: Text, one: Sequence[Hunk], other: Sequence[Hunk]) -> bool:
    every = [*one, *other]
    if not every:
        return True
    start, end = min(h.start for h in every), max(h.end for h in every)
    return _written(text.data, one, start, end) == _written(text.data, other, start, end)


def _written(data: bytes, changes: Sequence[Hunk], start: int, end: int) -> bytes:
    parts = []
    for hunk in changes:
        parts += [data[start : hunk.start], hunk.new]
        start = hunk.end
    return b"".join([*parts, data[start:end]])


def _already_elsewhere(text: Text, quote: Quote, enabled: Sequence[str]) -> Found | None:
    """The old half is nowhere at any rung; whether that is because the new one took its place."""
    if quote.old == quote.new or not quote.new:
        return None
    for reading, level in _readings(quote, enabled):
        if not _has_evidence(reading, level):
            continue
        if reading.rung == "elided":
            chain = elide.chain(text, elide.inverse(reading), level)
            fresh = chain.places if chain and chain.certain else ()
        else:
            fresh = tuple(places(text, elide.inverse(reading), level))
            if len(fresh) > 1:
                return None
        if fresh:
            return Found(
                reading.rung or level.rung, (), fresh[0].start, fresh[-1].end, already=True
            )
    return None


def _has_evidence(quote: Quote, level: Level) -> bool:
    """Whether the new half keeps a line of the old one, and says something that it did not."""
    old = {line.strip() for line in level.normalise(quote.old)}
    new = [line.strip() for line in level.normalise(quote.new)]
    return any(line and line in old for line in new) and any(
        line not in old and _WORD.search(line) for line in new
    )
