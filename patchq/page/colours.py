"""Code in colours, as HTML: the kinds of its tokens go into classes of their own, which no class of
the page can meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from markupsafe import Markup

from patchq.gate.api import syntax

PREFIX = "syntax-"
_MOST_LINE = 2000
Run = tuple[str, str]  # a class, or nothing, and the text


def lines(path: str, text: str) -> tuple[tuple[Run, ...], ...]:
    """The runs of each line; nothing for a file that is long, or in no known language."""
    return tuple(
        tuple((PREFIX + name if name else "", part) for name, part in line)
        for line in syntax.lines(path, text)
    )


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
