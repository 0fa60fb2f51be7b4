"""Calls of editing tools (docs/formats.md, Edit calls): the letter, deleted lines, names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"a.txt": "one\ntwo\nthree\n"}
CUT = {"a.txt": "one\nthree\n"}


def _messages(*calls: tuple[str, dict[str, Any]]) -> str:
    content = [
        {"type": "tool_use", "id": f"t{n}", "name": name, "input": words}
        for n, (name, words) in enumerate(calls)
    ]
    return json.dumps(
        {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
    )


def _edit(old: str, new: str = "", **more: Any) -> dict[str, Any]:
    return {"file_path": "a.txt", "old_string": old, "new_string": new, **more}


def _multi(*pairs: tuple[str, str]) -> dict[str, Any]:
    edits = [{"old_string": old, "new_string": new} for old, new in pairs]
    return {"file_path": "a.txt", "edits": edits}


def _rows(
    name: str, before: dict[str, str], calls: list[tuple[str, dict[str, Any]]], **outcome: Any
) -> list[Row]:
    return [Row(name, before, _messages(*calls), **outcome)]


DELETIONS = [
    *_rows("Edit", A, [("Edit", _edit("two"))], after=CUT),
    *_rows("MultiEdit", A, [("MultiEdit", _multi(("two", "")))], after=CUT),
    *_rows("every one", {"a.txt": "x\ny\nx\n"}, [("Edit", _edit("x", replace_all=True))],
           after={"a.txt": "y\n"}),
]  # fmt: skip


LETTER = [
    *_rows("behind the indentation", {"a.txt": "f:\n    one\n    two\n"},
           [("Edit", _edit("one\n    two", "if x:\n        one\n    two"))],
           after={"a.txt": "f:\n    if x:\n        one\n    two\n"}),
    *_rows("more lines, one further out", {"a.txt": "f:\n    one\n    two\n"},
           [("Edit", _edit("one", "one\ntwo"))], codes=("match.none",)),
]  # fmt: skip


LOOKS = ("view", "list_dir", "Glob", "grep", "mcp__fs__read_text_file")


NAMES = [
    *(row for name in LOOKS
      for row in _rows(name, A, [(name, {"path": "a.txt", "pattern": "two", "text": "two"}),
                                 ("Edit", _edit("two\n"))], after=CUT)),
    *_rows("an unknown one with a path", A,
           [("frobnicate", {"path": "a.txt"}), ("Edit", _edit("two\n"))],
           codes=("response.unreadable_edit",)),
    *_rows("it looks, and holds an edit", A, [("view", _edit("two\n"))],
           codes=("response.unreadable_edit",)),
]  # fmt: skip


@pytest.mark.parametrize("row", [*DELETIONS, *LETTER, *NAMES], ids=lambda row: row.name)
def test_calls(bench: Bench, row: Row) -> None:
    check(bench, row)
