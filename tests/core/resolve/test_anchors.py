"""Edits at an anchor, and the anchors that a file offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patchq.core.model.ops import Anchored
from tests.helpers.command import patchq
from tests.helpers.trees import PATH, result

CODE = """\
import os


class A:
    @property
    def f(self):
        # why
        return 1

    def g(self): return 2
"""
DEF, LINE = "function_definition", "line_pattern"


def anchored(action: Any, kind: Any, content: str = "", **said: Any) -> Anchored:
    return Anchored(
        action, kind, said.pop("selected", None), said.pop("name", None), content, **said
    )


@pytest.mark.parametrize(
    ("op", "old", "new"),
    [
        (anchored("insert_after", "import_statement", "import re\n", selected="import os"),
            "import os\n", "import os\nimport re\n"),  # an import
        (anchored("insert_before", DEF, "    x = 1\n", name="f"), "    @property\n",
            "    x = 1\n    @property\n"),  # before the decorators
        (anchored("insert_after", DEF, "\n    x = 1\n", name="f"), "        return 1\n",
            "        return 1\n\n    x = 1\n"),  # behind the whole definition
        (anchored("insert_after", DEF, "        y = 1\n", name="f", scope="line"),
            "(self):\n        #", "(self):\n        y = 1\n        #"),  # behind the header
        (anchored("replace", DEF, "    def f(self, x):\n", name="f"), "f(self)", "f(self, x)"),
        (anchored("replace", DEF, "    def f(self):\n        x()\n        return 1\n", name="f"),
            "    @property\n    def f(self):\n        # why\n", "    def f(self):\n        x()\n"),
        (anchored("replace", DEF, "    h = 1\n", name="f", scope="definition"),
            "    @property\n    def f(self):\n        # why\n        return 1\n", "    h = 1\n"),
        (anchored("delete", DEF, name="f"),
            "    @property\n    def f(self):\n        # why\n        return 1\n", ""),  # a deletion
        (anchored("delete", "decorator", selected="@property"), "    @property\n", ""),
        (anchored("insert_after", LINE, "x()\n", selected="# why"), "# why\n",
            "# why\n        x()\n"),  # shifted with its anchor
        (anchored("insert_after", LINE, "  x()\n", selected="# why"), "# why\n", "# why\n  x()\n"),
        (anchored("replace", "class_definition", "class B:\n", selected="class A:"), "class A",
            "class B"),  # a class's header
        (anchored("insert_after", LINE, "\n\n", selected="# why"), "# why\n", "# why\n\n\n"),
    ],
)  # fmt: skip
def test_anchor(op: Anchored, old: str, new: str) -> None:
    assert CODE.count(old) == 1
    assert result(CODE, op, path="m.py") == CODE.replace(old, new)


@pytest.mark.parametrize(
    ("path", "before", "op", "after"),
    [
        ("m.py", CODE, anchored("replace", DEF, "    x = 1\n", name="f"), "anchor.ambiguous"),
        ("m.py", CODE, anchored("delete", DEF, name="z"), "anchor.none"),  # no such name
        ("m.py", CODE, anchored("delete", LINE, selected="\n"), "anchor.none"),  # a blank line
        ("m.c", "f() {\n}\n", anchored("delete", DEF, selected="f() {"), "anchor.ambiguous"),
        ("m.py", "def f(:\n", anchored("delete", DEF, selected="def f(:"), "anchor.ambiguous"),
        ("f.txt", "a\na\n", anchored("delete", LINE, selected="a"), "anchor.ambiguous"),
        ("f.txt", "a\na\n", anchored("delete", LINE, selected="a", line=3), "anchor.ambiguous"),
        ("f.txt", "a\n", anchored("delete", LINE, selected="a", candidates=("b",)),
            "anchor.invented"),  # not among the candidates
        (PATH, "a\nb\na\n", anchored("delete", LINE, selected="a", line=3), "a\nb\n"),
        (PATH, " a \n", anchored("insert_before", LINE, " b\n", selected="\ta"), " b\n a \n"),
        (PATH, "a\nb\nc\n", anchored("replace", LINE, "d\n", selected="a\nb"), "d\nc\n"),
        (PATH, "a\r\nb", anchored("insert_after", LINE, "c", selected="b"), "a\r\nb\r\nc"),
        (PATH, "a\n", anchored("insert_after", LINE, "a\n", selected="a"), "a\na\n"),  # doubled
        (PATH, "a\nb\n", anchored("insert_after", LINE, "b\n", selected="a"), "already"),
        (PATH, "a\nb\n", anchored("insert_before", LINE, "a\n", selected="b"), "already"),
        (PATH, "a\nb\n", anchored("insert_after", LINE, "a\n", selected="b"), "a\nb\na\n"),
    ],
)  # fmt: skip
def test_what_it_makes(path: str, before: str, op: Anchored, after: str) -> None:
    assert result(before, op, path=path) == after


def test_the_command_prints_them_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    done = patchq("anchors", "a.py", "--line", "6", cwd=tmp_path)
    first = done.json()[0]
    assert (first["line"], first["lineno"]) == ("def f(self):", 6)
