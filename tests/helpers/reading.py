"""Responses as the parser reads them, on a repository with a few files."""

from __future__ import annotations

import json
from typing import Any

from patchq.core.formats import parse
from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.model.values import Header, Parsed

BASE = {
    "a.py", "a/own.py", "my file.md", "q.sql", "ä.txt", "src/a.py", "src/b.py", "src/app.py",
    "Makefile", "CHANGES", "README.md", "docs/my file.md",
}  # fmt: skip


def block(old: str = "old\n", new: str = "new\n", length: int = 7) -> str:
    """A block of whole lines, with markers of that length and a final newline."""
    return f"{'<' * length} SEARCH\n{old}{'=' * length}\n{new}{'>' * length} REPLACE\n"


BLOCK, CREATION = block(), block(old="")
DELETION = "<<<<<<< DELETE\n>>>>>>> DELETE\n"
RENAME = "<<<<<<< RENAME\nsrc/c.py\n>>>>>>> RENAME\n"
OLD_NEW, NEW = Replace("old\n", "new\n"), Create("new\n")
MOVE, GONE = Rename("src/c.py"), DeleteFile()


def read(value: Any, default_path: str | None = None) -> Parsed:
    """What a text, or a value as JSON, is read as."""
    text = value if isinstance(value, str) else json.dumps(value)
    return parse(text, BASE.__contains__, Header(file=default_path))


def said(value: Any, default_path: str | None = None) -> list[tuple[str, Op]]:
    """The paths and operations of a response that can be read."""
    parsed = read(value, default_path)
    assert parsed.problems == ()
    return [(edit.path, edit.op) for edit in parsed.edits]


def refused(value: Any) -> tuple[str, int | None]:
    """The code and the line with which a response is refused."""
    parsed = read(value)
    assert parsed.edits == ()
    (problem,) = parsed.problems
    assert problem.hint
    assert problem.message.startswith("line ")
    return problem.code.removeprefix("response."), problem.line
