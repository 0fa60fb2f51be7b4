"""Streams of agents and objects of hooks (docs/formats.md): what they did lands, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.deciding import BASE, ROOT, Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n", "src/b.py": "z = 1\n"}
INIT = {"type": "system", "subtype": "init", "cwd": ROOT, "model": "m", "session_id": "s"}
END = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
EDIT = {"file_path": f"{ROOT}/src/a.py", "old_string": "x = 1", "new_string": "x = 3"}
THEN = {"file_path": f"{ROOT}/src/a.py", "old_string": "x = 3", "new_string": "x = 4"}
NEW = {"file_path": f"{ROOT}/src/c.py", "content": "c = 1\n"}
DELETE = {"target_file": "src/b.py", "explanation": "It is not used."}
X3 = {"src/a.py": "x = 3\ny = 2\n"}


def call(number: int, name: str, words: dict[str, Any], error: bool | None = False) -> list[Any]:
    id = f"toolu_{number}"
    use = {"type": "tool_use", "id": id, "name": name, "input": words}
    result = {"type": "tool_result", "tool_use_id": id, "content": "…", "is_error": error}
    said = {"type": "assistant", "message": {"role": "assistant", "content": [use]}}
    told = {"type": "user", "message": {"role": "user", "content": [result]}}
    return [said] if error is None else [said, told]


def lines(*events: Any) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def hook(name: str, words: dict[str, Any], cwd: str = ROOT) -> dict[str, Any]:
    kind = {"hook_event_name": "PreToolUse", "session_id": "s", "permission_mode": "default"}
    return {**kind, "cwd": cwd, "tool_name": name, "tool_input": words}


ROWS = [
    Row("one after the other",
        A,
        lines(INIT, *call(1, "Edit", EDIT), *call(2, "Edit", THEN), *call(3, "Write", NEW), END),
        {"src/a.py": "x = 4\ny = 2\n", "src/c.py": "c = 1\n"}),
    Row("deleted",
        A,
        f"---\nbase: {BASE}\n---\n" + lines(INIT, *call(1, "delete_file", DELETE), END),
        {"src/b.py": None}),
    Row("a command beside, run",
        A,
        lines(INIT, *call(1, "Bash", {"command": "rm src/b.py"}), *call(2, "Edit", EDIT), END),
        X3, warnings=("response.beside",)),
    *(
        Row(f"taken back by {command}",
            A,
            lines(INIT, *call(1, "Edit", EDIT), *call(2, "Bash", {"command": command}), END),
            X3, warnings=("response.beside",))
        for command in ("git checkout -- src/a.py", "cd x && git checkout src/a.py", "git stash",
                        "git restore .", "git reset --hard HEAD", "git clean -fd",
                        "git checkout .")
    ),
    *(
        Row(f"not taken back by {command}",
            A,
            lines(INIT, *call(1, "Edit", EDIT), *call(2, "Bash", {"command": command}), END),
            X3)
        for command in ("git checkout -b new", "git checkout main", "git stash list", "git diff",
                        "git restore --staged src/a.py", "git reset src/a.py", "git clean -n")
    ),
    Row("a limit",
        A,
        lines(INIT, *call(1, "Edit", EDIT), {**END, "subtype": "error_max_turns"}),
        codes=("response.truncated",), says=("error_max_turns",)),
    Row("a directory below",
        A,
        lines({**INIT, "cwd": f"{ROOT}/src"}, *call(1, "Edit", {**EDIT, "file_path": "a.py"}), END),
        X3),
    Row("a hook's object", A, json.dumps(hook("Edit", EDIT), indent=1), X3),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_streams(bench: Bench, row: Row) -> None:
    check(bench, row)
