"""The match levels of a quote, in order, and what each ignores.

Level *k* ignores what all levels up to *k* ignore, as far as they are enabled.  `line_numbers`,
`unescaped` and `elided` rewrite the quote and start again from `exact`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

from msgspec import Struct

from patchq.core.text.lines import BLANKS, Normalise, plain_typography

LEVELS = (
    "exact", "line_endings", "trailing_whitespace", "indentation", "edge_blank_lines",
    "typography", "line_numbers", "unescaped", "elided",
)  # fmt: skip
_DIRECT = LEVELS[:6]

Lines = list[bytes]
DOTS = (b"...", "…".encode())


def quoted_lines(half: str) -> Lines:
    """Return the lines of a text as they are; an empty one has none."""
    data = half.encode("utf-8", "surrogateescape")
    return data.removesuffix(b"\n").split(b"\n") if data else []


def lines_of(half: str) -> Lines:
    r"""Return the lines of a text, at least one, without a final `\r`."""
    return [line.removesuffix(b"\r") for line in quoted_lines(half) or [b""]]


def stripped(lines: Lines) -> Lines:
    return [line.strip(BLANKS) for line in lines]


class Level(Struct, frozen=True):
    """A match level; `normalise` applies it and all levels before it.

    `normalise` is None where they ignore nothing.
    """

    name: str
    normalise: Normalise | None
    shifts: bool = False
    edges: bool = False


EXACT = Level("exact", None)
STRIPPED = Level("stripped", stripped)


@cache
def match_levels(enabled: tuple[str, ...]) -> tuple[Level, ...]:
    """Return the enabled levels that keep the quote as it is; always `exact`."""
    on: set[str] = set()
    ladder: list[Level] = []
    for name in _DIRECT:
        if name == "exact" or name in enabled:
            on.add(name)
            if name == "edge_blank_lines":
                # Without its blank lines the quote may stand at a finer level than with all others.
                ladder += [Level(name, finer.normalise, finer.shifts, True) for finer in ladder]
            else:
                read = _normaliser(
                    "line_endings" in on, "trailing_whitespace" in on, "typography" in on
                )
                ladder.append(Level(name, read, "indentation" in on, "edge_blank_lines" in on))
    return tuple(ladder)


@cache
def _normaliser(ends: bool, trailing: bool, typography: bool) -> Normalise | None:
    def normalise(lines: Lines) -> Lines:
        if typography and lines:
            lines = plain_typography(b"\n".join(lines)).split(b"\n")
        if trailing:
            return [line.rstrip(BLANKS) for line in lines]
        return [line.removesuffix(b"\r") for line in lines] if ends else lines

    return normalise if ends or trailing or typography else None


class Quote(Struct, frozen=True):
    r"""The two halves of an edit as lines without `\n`, perhaps rewritten.

    `level` is the rewriting level that made it, or None for the text as it is.  `flaw` says why
    the new half could not be rewritten as the old one was.
    """

    old: Lines
    new: Lines
    level: str | None = None
    flaw: str | None = None

    def inverse(self) -> Quote:
        """Return the quote with both halves exchanged."""
        return Quote(self.new, self.old, self.level)


class Unwritable(Exception):
    """The new half cannot be written at the old half's place."""


_NUMBER = re.compile(rb"[ \t]*(\d{1,9})(?: ?(\|)( ?)|\t| ?\xe2\x86\x92)")
_ESCAPE = re.compile(rb"\\(n|t|r|\"|'|`|\\)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def without_numbers(quote: Quote) -> Quote | None:
    """Return the quote without line numbers (`12 | `, `12→`), or None.

    The numbers count up by one.  Blank lines need none.
    """
    old, new = ([(line, _NUMBER.match(line)) for line in half] for half in (quote.old, quote.new))
    numbers = [number and int(number[1]) for line, number in old if line.strip()]
    if (
        not numbers
        or numbers[0] is None
        or numbers != [*range(numbers[0], numbers[0] + len(numbers))]
    ):
        return None
    carrying = [number is not None for line, number in new if line.strip()]
    # A blank behind the bar belongs to the number only if it is behind every bar.
    barred = [(line, number) for line, number in (*old, *new) if number and number[2]]
    wide = all(number[3] or number.end() == len(line) for line, number in barred)
    bare_old, bare_new = ([_behind(*line, wide) for line in half] for half in (old, new))
    flaw = None
    if any(carrying) and not all(carrying):
        flaw = "only some of the new lines carry a line number"
    indented = all(line[:1] in (b" ", b"\t") for line in quote.old if line.strip())
    if indented and not any(carrying) and _shifted_all(bare_old, bare_new):
        flaw = "the new lines are indented otherwise than those that carry line numbers"
    return Quote(bare_old, bare_new, "line_numbers", flaw)


def _shifted_all(old: Lines, new: Lines) -> bool:
    """Return True if `new` keeps lines of `old`, all with another indentation."""
    texts = {line.lstrip(b" \t") for line in old}
    kept = [line for line in new if line.strip() and line.lstrip(b" \t") in texts]
    return bool(kept) and set(old).isdisjoint(kept)


def _behind(line: bytes, number: re.Match[bytes] | None, wide: bool) -> bytes:
    if number is None:
        return line
    return line[number.start(3) if number[2] and not wide else number.end() :]


def unescape(data: bytes) -> bytes:
    r"""Return the bytes with one level of escapes (`\n`, `\t`, `\r`, quotes) undone."""
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), data)


def unescaped(quote: Quote) -> Quote | None:
    """Return the quote with one level of escapes undone, if `old` has any."""
    old = _unescaped_lines(quote.old)
    if old == quote.old:
        return None
    return Quote(old, _unescaped_lines(quote.new), "unescaped", quote.flaw)


_MOST_PIECES = 50


def elided(quote: Quote) -> Quote | None:
    """Return the quote with its `...` lines read as gaps, if they can be.

    Both halves must leave lines out, equally often and between quoted lines only.
    """
    old, new = segments(quote.old), segments(quote.new)
    alike = 1 < len(old) == len(new) <= _MOST_PIECES and all((*old, *new))
    if not alike or not all(any(b"".join(one).strip() for one in half) for half in (old, new)):
        return None
    return Quote(quote.old, quote.new, "elided", quote.flaw)


def segments(lines: Lines) -> list[Lines]:
    """Return the segments between the `...` lines."""
    runs: list[Lines] = [[]]
    for line in lines:
        if line.strip() in DOTS:
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def _unescaped_lines(half: Lines) -> Lines:
    if not half:
        return half
    lines = unescape(b"\n".join(half)).split(b"\n")
    if half[-1] and not lines[-1]:
        lines.pop()
    return lines


def unescape_text(text: str) -> str:
    """Return a text of whole lines with one level of escapes undone."""
    half = text.removesuffix("\n").encode("utf-8", "surrogateescape").split(b"\n")
    return b"".join(line + b"\n" for line in _unescaped_lines(half)).decode(
        errors="surrogateescape"
    )


def is_escaped_line(text: str) -> bool:
    """Return True if a text has line breaks as escapes only."""
    return "\\n" in text and "\n" not in text.removesuffix("\n")


_REWRITINGS = (("line_numbers", without_numbers), ("unescaped", unescaped), ("elided", elided))


def rewritten(quote: Quote, enabled: Collection[str]) -> Iterator[Quote]:
    """Yield the quote, then each enabled rewriting of it, in order of the levels."""
    readings = [quote]
    yield quote
    for name, rewrite in _REWRITINGS:
        if name in enabled:
            more = [reading for reading in map(rewrite, readings) if reading]
            yield from more
            readings += more
