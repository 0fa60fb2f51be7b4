"""What edit scripts say."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.core.model.ops import Anchored
from tests.helpers.reading import refused, said

UNREADABLE = "unreadable_edit"
RE = "import re\n"
LINE = {"type": "line_pattern", "selected": "    import os"}


def edit(type: str | None = "insert_after", anchor: Any = LINE, **members: Any) -> dict[str, Any]:
    content = {} if type == "delete" else {"content": RE}
    return {"type": type, "anchor": anchor, **content, **members}


def script(*items: Any, **members: Any) -> dict[str, Any]:
    return {"file": "a.py", "edits": list(items), **members}


def anchored(value: Any) -> Anchored:
    ((path, op),) = said(script(value))
    assert path == "a.py"
    assert isinstance(op, Anchored)
    return op


@pytest.mark.parametrize(
    ("value", "op"),
    [
        (edit("insert_before", {"type": "import_statement", "selected": "import os", "line": 3}),
            Anchored("insert_before", "import_statement", "import os", None, RE, line=3)),
        (edit("delete", {"type": "decorator", "pattern": "@cache"}),
            Anchored("delete", "decorator", "@cache", None, "")),
        (edit("delete", content=None),
            Anchored("delete", "line_pattern", "    import os", None, "")),
        (edit("replace", {"type": "function_definition", "name": "run"}, scope="line"),
            Anchored("replace", "function_definition", None, "run", RE, scope="line")),
        (edit("replace", {"type": "class_definition", "selected": "class A:", "name": "A",
                          "scope": "definition", "candidates": ["class A:", "class B:"]}),
            Anchored("replace", "class_definition", "class A:", "A", RE, scope="definition",
                     candidates=("class A:", "class B:"))),
        (edit(anchor={"type": "line_pattern", "pattern": "os", "selected": "import os\n"}),
            Anchored("insert_after", "line_pattern", "import os", None, RE)),
        (edit(anchor={"type": "line_pattern", "selected": "x = (\n    1,\n)", "candidates": []}),
            Anchored("insert_after", "line_pattern", "x = (\n    1,\n)", None, RE)),
    ],
)  # fmt: skip
def test_parses_to(value: Any, op: Anchored) -> None:
    assert anchored(value) == op


@pytest.mark.parametrize(
    ("content", "lines"),
    [("x", "x\n"), ("x\n", "x\n"), ("x\r\n", "x\r\n")],
)
def test_one_final_newline_ends_the_content(content: str, lines: str) -> None:
    assert anchored(edit(content=content)).content == lines


@pytest.mark.parametrize(
    "value",
    [
        edit("insert"), edit(type=None), edit(anchor="import os"), edit(anchor={"selected": "x"}),
        edit(anchor={"type": "method", "selected": "x"}),
        edit(anchor={"type": "line_pattern", "name": "x"}), edit(anchor={**LINE, "selected": 3}),
        edit(anchor={**LINE, "line": 0}), edit(anchor={**LINE, "line": "3"}),
        edit(anchor={**LINE, "candidates": [{"line": 3}]}), edit(content=""), edit(content=["x"]),
        edit("delete", content="x"), edit("replace", scope="all"), edit(confidence="high"),
    ],
)  # fmt: skip
def test_is_unreadable(value: Any) -> None:
    assert refused(script(edit(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        script(edit(), "x"), script(edit(), old_str="x"), script(edit(), more=[{"old_str": "x"}]),
        edit(), [script(edit()), {"file": "a.py", "edits": [{"type": "x"}]}],
    ],
)  # fmt: skip
def test_script_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)
