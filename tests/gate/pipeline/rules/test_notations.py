"""Blocks that stand in the notation of other tools, and how their paths are written."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n", "src/b.py": "z = 1\n"}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
BARE = BLOCK.removeprefix("src/a.py\n")
UNREADABLE = ("response.unreadable_edit",)


def cline(path: str, block: str) -> str:
    return f"<replace_in_file>\n<path>{path}</path>\n<diff>\n{block}</diff>\n</replace_in_file>\n"


READ = [
    Row("a call that holds a block", A, cline("src/a.py", BARE), DONE),
    Row(
        "lines that look so, in both halves",
        {"n.md": ":start_line:1\n-------\nx\n"},
        "n.md\n<<<<<<< SEARCH\n:start_line:1\n-------\nx\n=======\n:start_line:1\n-------\ny\n"
        ">>>>>>> REPLACE\n",
        {"n.md": ":start_line:1\n-------\ny\n"},
    ),
    *(
        Row(f"a path as {line}", A, f"{line}\n{text}", DONE)
        for line in ("src/a.py:1", "`src/a.py:1-2`")
        for text in (BARE, f"```python\n{BARE}```\n")
    ),
    Row("two paths in words", A, f"Not src/b.py but src/a.py:\n{BARE}", codes=UNREADABLE),
    Row("a path in tags", A, f"<path>src/a.py</path>\n{BARE}", DONE),
]


@pytest.mark.parametrize("row", READ, ids=lambda row: row.name)
def test_notations(bench: Bench, row: Row) -> None:
    check(bench, row)
