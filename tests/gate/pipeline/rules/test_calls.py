"""Calls of editing tools (docs/formats.md, Edit calls): the letter, deleted lines, names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"a.txt": "one\ntwo\nthree\n"}
INNER = {"a.txt": "f:\n    one\n    two\n"}
CUT = {"a.txt": "one\nthree\n"}
UNREADABLE = ("response.unreadable_edit",)


def called(*calls: tuple[str, dict[str, Any]]) -> str:
    content = [
        {"type": "tool_use", "id": f"t{n}", "name": name, "input": words}
        for n, (name, words) in enumerate(calls)
    ]
    return json.dumps(
        {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
    )


def edit(old: str, new: str = "", **more: Any) -> dict[str, Any]:
    return {"file_path": "a.txt", "old_string": old, "new_string": new, **more}


MULTI = {"file_path": "a.txt", "edits": [{"old_string": "two", "new_string": ""}]}
LOOK = {"path": "a.txt", "pattern": "two", "text": "two"}
ROWS = [
    Row("Edit", A, called(("Edit", edit("two"))), CUT),
    Row("MultiEdit", A, called(("MultiEdit", MULTI)), CUT),
    Row("every one", {"a.txt": "x\ny\nx\n"}, called(("Edit", edit("x", replace_all=True))),
        {"a.txt": "y\n"}),
    Row("behind the indentation", INNER,
        called(("Edit", edit("one\n    two", "if x:\n        one\n    two"))),
        {"a.txt": "f:\n    if x:\n        one\n    two\n"}),
    Row("more lines, one further out", INNER, called(("Edit", edit("one", "one\ntwo"))),
        codes=("match.none",)),
    *(Row(name, A, called((name, LOOK), ("Edit", edit("two\n"))), CUT)
      for name in ("list_dir", "mcp__fs__read_text_file")),
    Row("an unknown one with a path", A,
        called(("frobnicate", {"path": "a.txt"}), ("Edit", edit("two\n"))), codes=UNREADABLE),
    Row("it looks, and holds an edit", A, called(("view", edit("two\n"))), codes=UNREADABLE),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_calls(bench: Bench, row: Row) -> None:
    check(bench, row)
