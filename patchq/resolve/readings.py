"""How a quote may be read: the ladder's rungs, in their order, and what each of them ignores.

Rung *k* ignores what all rungs up to *k* ignore.  `line_numbers`, `unescaped` and `elided` rewrite
the quote and start again from `exact`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from patchq.text import BLANKS, plain_typography

RUNGS = (
    "exact", "line_endings", "trailing_whitespace", "indentation", "edge_blank_lines",
    "typography", "line_numbers", "unescaped", "elided",
)  # fmt: skip
_LEVELS = RUNGS[:6]

Lines = list[bytes]
Normalise = Callable[[Lines], Lines]


def as_they_are(lines: Lines) -> Lines:
    return lines


def trimmed(lines: Lines) -> Lines:
    return [line.rstrip(BLANKS) for line in lines]


def plain(lines: Lines) -> Lines:
    return plain_typography(b"\n".join(lines)).split(b"\n") if lines else lines


def plain_trimmed(lines: Lines) -> Lines:
    return trimmed(plain(lines))


_NORMALISE: dict[tuple[bool, bool], Normalise] = {
    (False, False): as_they_are,
    (True, False): trimmed,
    (False, True): plain,
    (True, True): plain_trimmed,
}


@dataclass(frozen=True, slots=True)
class Level:
    """What one rung, with those below it, ignores.  `raw` compares line ends too."""

    rung: str
    raw: bool
    normalise: Normalise
    shifts: bool
    edges: bool


def levels(enabled: Iterable[str]) -> Iterator[Level]:
    """The levels of the rungs that are enabled; `exact` always is."""
    on: set[str] = set()
    chosen = {"exact", *enabled}
    for rung in _LEVELS:
        if rung not in chosen:
            continue
        on.add(rung)
        yield Level(
            rung=rung,
            raw=on == {"exact"},
            normalise=_NORMALISE["trailing_whitespace" in on, "typography" in on],
            shifts="indentation" in on,
            edges="edge_blank_lines" in on,
        )


@dataclass(frozen=True, slots=True)
class Quote:
    """The two halves of an edit as lines without `\n`, as they were written or rewritten.

    `rung` is the rewriting rung that made it, or None for the text as it stands.
    """

    old: Lines
    new: Lines
    rung: str | None = None


class Unreadable(Exception):
    """A half cannot be rewritten as the other one was; the message says why."""


_NUMBERED = re.compile(rb"[ \t]*(\d+)(?: ?\| ?|\t| ?\xe2\x86\x92)")
_ESCAPE = re.compile(rb"\\(n|t|r|\"|'|`|\\)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def without_numbers(quote: Quote) -> Quote | None:
    """The quote without `12 | ` or `12→` in front of every line; None when it has none.

    The numbers must count up by one.  Raises `Unreadable` when only some new lines carry one.
    """
    matches = [_NUMBERED.match(line) for line in quote.old]
    numbers = [int(m[1]) for m in matches if m]
    if len(numbers) != len(quote.old) or not numbers:
        return None
    if any(b - a != 1 for a, b in pairwise(numbers)):
        return None
    fresh = [_NUMBERED.match(line) for line in quote.new]
    if not all(fresh) and any(fresh):
        raise Unreadable("only some of the new lines carry a line number")
    return Quote(
        [line[m.end() :] for line, m in zip(quote.old, matches, strict=True) if m],
        [line[m.end() :] if m else line for line, m in zip(quote.new, fresh, strict=True)],
        "line_numbers",
    )


def unescape(data: bytes) -> bytes:
    """One level of backslash escapes (`\n`, `\t`, `\r`, quotes, backslash) undone."""
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), data)


def unescaped(quote: Quote) -> Quote | None:
    """Both halves with one level of escapes undone; None when the old half has none."""
    old = unescape(b"\n".join(quote.old))
    if old == b"\n".join(quote.old):
        return None
    new = unescape(b"\n".join(quote.new))
    return Quote(old.split(b"\n"), new.split(b"\n") if quote.new else [], "unescaped")


def rewritten(quote: Quote, enabled: Iterable[str]) -> Iterator[Quote]:
    """The quote itself, then each way to rewrite it, in the ladder's order."""
    chosen = set(enabled)
    readings = [quote]
    yield quote
    for rung, rewrite in (("line_numbers", without_numbers), ("unescaped", unescaped)):
        if rung in chosen:
            fresh = [r for r in map(rewrite, readings) if r]
            yield from fresh
            readings += fresh
