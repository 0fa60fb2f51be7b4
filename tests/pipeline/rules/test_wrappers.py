"""What stands round edits (docs/formats.md, Envelopes): taken off, or left as it was."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
DONE = {"src/a.py": "x = 3\ny = 2\n"}

NEIGHBOURS = [
    Row("fence of four under its path", A, f"src/a.py\n````python\n{BLOCK}````\n", DONE),
    Row("info with the path over a block", A, f"```python:src/a.py\n{BLOCK}```\n", DONE),
    Row("a rule of dashes round prose", A, f"---\nSome words.\n---\n\nsrc/a.py\n{BLOCK}", DONE),
    Row(
        "details",
        A,
        f"<details>\n<summary>Why</summary>\n\nIt was asked.\n\n</details>\n\nsrc/a.py\n{BLOCK}",
        DONE,
    ),
    Row(
        "a command that is run",
        A,
        f"```sh\nmkdir -p out\npytest > out.log\n```\n\nsrc/a.py\n{BLOCK}",
        DONE,
    ),
]


@pytest.mark.parametrize("row", NEIGHBOURS, ids=lambda row: row.name)
def test_what_stays(bench: Bench, row: Row) -> None:
    check(bench, row)
