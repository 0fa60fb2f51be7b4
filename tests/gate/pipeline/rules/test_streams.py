"""Streams of agents and objects of hooks (docs/formats.md): what they did lands, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.deciding import ROOT, Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n", "src/b.py": "z = 1\n"}
INIT = {"type": "system", "subtype": "init", "cwd": ROOT, "model": "m", "session_id": "s"}
END = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
EDIT = {"file_path": f"{ROOT}/src/a.py", "old_string": "x = 1", "new_string": "x = 3"}
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


ROWS = [
    *(
        Row(f"taken back by {command}",
            A,
            lines(INIT, *call(1, "Edit", EDIT), *call(2, "Bash", {"command": command}), END),
            X3, warnings=("response.beside",))
        for command in ("cd x && git checkout src/a.py", "git stash", "git restore .",
                        "git reset --hard HEAD")
    ),
    *(
        Row(f"not taken back by {command}",
            A,
            lines(INIT, *call(1, "Edit", EDIT), *call(2, "Bash", {"command": command}), END),
            X3)
        for command in ("git checkout main", "git stash list", "git restore --staged src/a.py",
                        "git clean -n")
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_streams(bench: Bench, row: Row) -> None:
    check(bench, row)
