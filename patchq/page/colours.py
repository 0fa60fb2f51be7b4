"""Code in colours, as HTML: the kinds of its tokens go into classes of their own, which no class of
the page can meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from markupsafe import Markup, escape

from patchq.gate.api.syntax import Run

_MOST_LINE = 2000


def marked(text: str, runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Markup:
    """The text as HTML, with its marks, and in colours if the runs are of this very text."""
    if "".join([part for _, part in runs]) != text or len(text) > _MOST_LINE:
        runs = (("", text),)
    if not marks:
        return Markup("".join([_piece(part, kind) for kind, part in runs]))
    return Markup("".join(_pieces(runs, marks)))


def _pieces(runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Iterator[str]:
    ends = {edge for mark in marks for edge in mark}
    starts = accumulate((len(part) for _, part in runs), initial=0)
    for start, (kind, part) in zip(starts, runs, strict=False):
        stop = start + len(part)
        edges = sorted({start, stop, *(edge for edge in ends if start < edge < stop)})
        for first, end in pairwise(edges):
            piece = _piece(part[first - start : end - start], kind)
            is_marked = any(a <= first and end <= b for a, b in marks)
            yield f"<mark>{piece}</mark>" if is_marked else piece


def _piece(text: str, kind: str) -> str:
    # Formatting each piece as Markup takes five times as long.
    return f'<span class="syntax-{kind}">{escape(text)}</span>' if kind else str(escape(text))
