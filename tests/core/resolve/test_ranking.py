"""Anchor candidates: which there are, and which come first."""

from __future__ import annotations

from pathlib import Path

from patchq.core.resolve.anchors import ranked
from tests.helpers.command import patchq

SOURCE = """\
import os
from a import (
    b,
)


@decorated(1)
class Login:
    def check(self, name):
        user = self.users.get(name)
        return user

    def forget(self, name):
        user = self.users.get(name)
"""


def test_python_gives_definitions_imports_decorators_and_lines() -> None:
    found = {(c.type, c.name, c.lineno, c.end_lineno) for c in ranked("a.py", SOURCE)}
    assert {
        ("import_statement", "import os", 1, 1),
        ("import_statement", "from a import b", 2, 4),
        ("decorator", "decorated(1)", 7, 7),
        ("class_definition", "Login", 8, 14),
        ("function_definition", "check", 9, 11),
        ("line_pattern", None, 11, 11),
    } <= found


def test_a_file_that_does_not_parse_gives_lines() -> None:
    assert {c.type for c in ranked("a.py", "def broken(:\n    x\n")} == {"line_pattern"}


def test_the_command_prints_them_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    done = patchq("anchors", "a.py", "--line", "9", cwd=tmp_path)
    first = done.json()[0]
    assert (first["line"], first["lineno"]) == ("def check(self, name):", 9)
