"""Blocks as models write them, for the tests of the parser."""

from __future__ import annotations

from patchq.core.formats import parse
from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.model.values import Header, Parsed

BASE = {"src/a.py", "src/b.py", "Makefile", "CHANGES", "docs/my file.md", "README.md"}


def block(old: str = "old\n", new: str = "new\n", length: int = 7) -> str:
    """A block of whole lines, with markers of that length and a final newline."""
    return f"{'<' * length} SEARCH\n{old}{'=' * length}\n{new}{'>' * length} REPLACE\n"


BLOCK = block()
CREATION = block(old="")
DELETION = "<<<<<<< DELETE\n>>>>>>> DELETE\n"
RENAME = "<<<<<<< RENAME\nsrc/c.py\n>>>>>>> RENAME\n"


def read(text: str, default_path: str | None = None) -> Parsed:
    return parse(text, BASE.__contains__, Header(file=default_path))


def said(text: str) -> list[tuple[str, Op]]:
    """The paths and operations of a response that can be read."""
    parsed = read(text)
    assert parsed.problems == ()
    return [(edit.path, edit.op) for edit in parsed.edits]


OLD_NEW = Replace("old\n", "new\n")
NEW = Create("new\n")
MOVE = Rename("src/c.py")
GONE = DeleteFile()
