"""What edit scripts say."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.core.model.ops import Anchored
from tests.helpers.reading import refused, said

UNREADABLE = "unreadable_edit"
LINE = {"type": "line_pattern", "selected": "    import os"}


def edit(type: str | None = "insert_after", anchor: Any = LINE, **members: Any) -> dict[str, Any]:
    content = {} if type == "delete" else {"content": "import re\n"}
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
        pytest.param(
            edit("insert_before", {"type": "import_statement", "selected": "import os", "line": 3}),
            Anchored("insert_before", "import_statement", "import os", None, "import re\n", line=3),
            id="a stated line",
        ),
        pytest.param(
            edit("delete", {"type": "decorator", "pattern": "@cache"}),
            Anchored("delete", "decorator", "@cache", None, ""),
            id="delete",
        ),
        pytest.param(
            edit("delete", content=None),
            Anchored("delete", "line_pattern", "    import os", None, ""),
            id="delete with null",
        ),
        pytest.param(
            edit("replace", {"type": "function_definition", "name": "run"}, scope="line"),
            Anchored("replace", "function_definition", None, "run", "import re\n", scope="line"),
            id="a definition by its name",
        ),
        pytest.param(
            edit(
                "replace",
                {"type": "class_definition", "selected": "class A:", "name": "A",
                 "scope": "definition", "candidates": ["class A:", "class B:"]},
            ),
            Anchored(
                "replace", "class_definition", "class A:", "A", "import re\n",
                scope="definition", candidates=("class A:", "class B:"),
            ),
            id="candidates",
        ),
        pytest.param(
            edit(anchor={"type": "line_pattern", "pattern": "os", "selected": "import os\n"}),
            Anchored("insert_after", "line_pattern", "import os", None, "import re\n"),
            id="what is selected counts, not the pattern",
        ),
        pytest.param(
            edit(anchor={"type": "line_pattern", "selected": "x = (\n    1,\n)", "candidates": []}),
            Anchored("insert_after", "line_pattern", "x = (\n    1,\n)", None, "import re\n"),
            id="several lines",
        ),
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
        pytest.param(edit("insert"), id="an unknown type"),
        pytest.param(edit(type=None), id="no type"),
        pytest.param(edit(anchor="import os"), id="an anchor that is a text"),
        pytest.param(edit(anchor={"selected": "x"}), id="an anchor without type"),
        pytest.param(edit(anchor={"type": "method", "selected": "x"}), id="an unknown anchor"),
        pytest.param(edit(anchor={"type": "line_pattern", "name": "x"}), id="a line by its name"),
        pytest.param(edit(anchor={**LINE, "selected": 3}), id="a number as anchor"),
        pytest.param(edit(anchor={**LINE, "line": 0}), id="line 0"),
        pytest.param(edit(anchor={**LINE, "line": "3"}), id="a text as line"),
        pytest.param(edit(anchor={**LINE, "candidates": [{"line": 3}]}), id="candidates"),
        pytest.param(edit(content=""), id="empty content"),
        pytest.param(edit(content=["x"]), id="a list as content"),
        pytest.param(edit("delete", content="x"), id="delete with content"),
        pytest.param(edit("replace", scope="all"), id="an unknown scope"),
        pytest.param(edit(confidence="high"), id="confidence"),
    ],
)
def test_is_unreadable(value: Any) -> None:
    assert refused(script(edit(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(script(edit(), "x"), id="an edit that is no object"),
        pytest.param(script(edit(), old_str="x"), id="a call as well"),
        pytest.param(script(edit(), more=[{"old_str": "x"}]), id="a call inside"),
        pytest.param(edit(), id="an edit without its script"),
        pytest.param([script(edit()), {"file": "a.py", "edits": [{"type": "x"}]}], id="no anchor"),
    ],
)
def test_script_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)
