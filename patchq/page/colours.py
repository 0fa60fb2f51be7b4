"""Code in colours, as HTML: the kinds of its tokens go into classes of their own, which no class of
the page can meet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from patchq.gate.api.syntax import Run


def marked(text: str, runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Markup:
    """Return the text as HTML with its marks, in colours if the runs are of this very text."""
    if "".join([part for _, part in runs]) != text:
        runs = (("", text),)
    if not marks:
        return Markup("".join([_piece(part, kind) for kind, part in runs]))
    edges = {edge for mark in marks for edge in mark}
    pieces, start = list[str](), 0
    for kind, part in runs:
        stop = start + len(part)
        for first, end in pairwise(
            sorted({start, stop, *(edge for edge in edges if start < edge < stop)})
        ):
            piece = _piece(text[first:end], kind)
            is_marked = any(a <= first and end <= b for a, b in marks)
            pieces.append(f"<mark>{piece}</mark>" if is_marked else piece)
        start = stop
    return Markup("".join(pieces))


def _piece(text: str, kind: str) -> str:
    # Formatting each piece as Markup takes five times as long.
    return f'<span class="syntax-{kind}">{escape(text)}</span>' if kind else str(escape(text))
