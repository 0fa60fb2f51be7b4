"""Reads a text for its JSON alone, as the parser asks line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core.formats.format import Document, Piece, UnreadableEdit
from patchq.core.formats.json import grammar
from patchq.core.formats.registry import FORMATS
from patchq.core.model.ops import Op
from patchq.core.model.values import Edit, Problem

OF_JSON = (grammar.read, grammar.refuse_member)
BASE = {"a.py", "src/b.py", "a/own.py", "CHANGES"}


def read(text: str, default_path: str | None = None) -> list[Piece]:
    """The pieces of a text; raises `UnreadableEdit`."""
    doc = Document(text.split("\n"), BASE.__contains__, default_path)
    pieces: list[Piece] = []
    i = 0
    while i < len(doc.lines):
        forms = [form for form in FORMATS.begins(doc.lines[i]).reads if form in OF_JSON]
        piece = forms[0](doc, i) if forms else None
        if piece is None:
            if doc.fences.at(i):
                doc.fences.read(i)
            i += 1
            continue
        assert piece.edits
        assert i < piece.end <= len(doc.lines)
        for edit in piece.edits:
            assert i < edit.at[0] <= edit.at[1] <= piece.end
        pieces.append(piece)
        doc.low = i = piece.end
    return pieces


def edits(text: str, default_path: str | None = None) -> list[Edit]:
    return [edit for piece in read(text, default_path) for edit in piece.edits]


def said(value: Any, default_path: str | None = None) -> list[tuple[str, Op]]:
    """The paths and operations that a text, or a value as JSON, says."""
    text = value if isinstance(value, str) else json.dumps(value)
    return [(edit.path, edit.op) for edit in edits(text, default_path)]


def refusal(value: Any, default_path: str | None = None) -> Problem:
    """Why a text, or a value as JSON, is unreadable; its message says the place."""
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(UnreadableEdit) as caught:
        read(text, default_path)
    problem = caught.value.problem
    assert problem.hint
    assert problem.line is not None
    assert 1 <= problem.line <= text.count("\n") + 1
    assert problem.message.startswith(f"line {problem.line}, column ")
    return problem


def refused(value: Any) -> tuple[str, int | None]:
    """The code and line of a refusal."""
    problem = refusal(value)
    return problem.code, problem.line


def outcome(text: str) -> list[Edit] | Problem:
    """The edits of a text, or the problem that refuses it."""
    try:
        return edits(text)
    except UnreadableEdit as error:
        return error.problem
