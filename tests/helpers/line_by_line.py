"""Reads a text with one form alone, as the parser asks the forms line by line."""

from __future__ import annotations

from collections.abc import Callable

from patchq.core.formats.format import Document, Piece, UnreadableEdit
from patchq.core.model.ops import Create, Write
from patchq.core.model.values import Edit, Problem

BASE = {"src/a.py", "src/b.py", "src/app.py", "Makefile", "README.md", "docs/my file.md"}

Read = Callable[[Document, int], Piece | None]


def edits_of(text: str, *forms: Read, default_path: str | None = None) -> list[Edit]:
    """The edits of a text; raises `UnreadableEdit`."""
    doc = Document(text.split("\n"), BASE.__contains__, default_path)
    edits: list[Edit] = []
    i = 0
    while i < len(doc.lines):
        piece = next((piece for read in forms if (piece := read(doc, i))), None)
        if piece is None:
            if doc.fences.at(i):
                doc.fences.read(i)
            i += 1
            continue
        assert i < piece.end <= len(doc.lines)
        if piece.under_path:
            i = piece.end
            continue
        assert piece.top is not None
        assert doc.low <= piece.top <= i
        assert all(piece.top < edit.at[0] <= edit.at[1] <= piece.end for edit in piece.edits)
        edits += piece.edits
        doc.path = piece.edits[-1].path
        doc.known.made.update(e.path for e in piece.edits if isinstance(e.op, Create | Write))
        i = doc.low = piece.end
    return edits


def read_or_refused(
    text: str, *forms: Read, default_path: str | None = None
) -> list[Edit] | Problem:
    """The edits of a text, or the problem that refuses it."""
    try:
        return edits_of(text, *forms, default_path=default_path)
    except UnreadableEdit as error:
        return error.problem


def refusal(text: str, *forms: Read, default_path: str | None = None) -> tuple[str, int]:
    """The code and the line with which a text is refused."""
    problem = read_or_refused(text, *forms, default_path=default_path)
    assert isinstance(problem, Problem), problem
    assert problem.hint
    assert problem.line is not None
    assert 1 <= problem.line <= text.count("\n") + 1
    assert problem.message.startswith(f"line {problem.line}, column 1: ")
    return problem.code.removeprefix("response."), problem.line
