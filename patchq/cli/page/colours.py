"""Code in colours: the lines of a file as runs of text, each with its class.

The lexer sees a whole file, so that a line inside a long string is known as one.  Its names go into
classes of their own, which no class of the page can meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from markupsafe import Markup
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

PREFIX = "syntax-"
_MOST_BYTES = 300_000
"""Of a file; a longer one is shown without colours."""
_MOST_LINE = 2000
Run = tuple[str, str]
"""A class, or nothing, and the text."""


@lru_cache(maxsize=128)
def lines(path: str, text: str) -> tuple[tuple[Run, ...], ...]:
    """The runs of each line; nothing for a file that is long, or in no known language."""
    if len(text) > _MOST_BYTES:
        return ()
    try:
        lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ()
    found: list[tuple[Run, ...]] = []
    line: list[Run] = []
    for token, value in lexer.get_tokens(text):
        name = next(filter(None, (STANDARD_TYPES.get(one) for one in reversed(token.split()))), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                found.append(tuple(line))
                line = []
            if part:
                line.append((PREFIX + name if name else "", part))
    return (*found, tuple(line))


def marked(text: str, runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Markup:
    """The text as HTML, with its marks, and in colours if the runs are of this very text."""
    if "".join(part for _, part in runs) != text or len(text) > _MOST_LINE:
        runs = (("", text),)
    return Markup("").join(_pieces(runs, marks))


def _pieces(runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Iterator[Markup]:
    ends = {edge for mark in marks for edge in mark}
    starts = accumulate((len(part) for _, part in runs), initial=0)
    for start, (name, part) in zip(starts, runs, strict=False):
        edges = sorted(
            {start, start + len(part), *(e for e in ends if start < e < start + len(part))}
        )
        for first, end in pairwise(edges):
            is_marked = any(a <= first and end <= b for a, b in marks)
            yield _piece(part[first - start : end - start], name, is_marked)


def _piece(text: str, name: str, is_marked: bool) -> Markup:
    piece = Markup('<span class="{}">{}</span>').format(name, text) if name else Markup.escape(text)
    return Markup("<mark>{}</mark>").format(piece) if is_marked else piece
