"""FIND/REPLACE blocks and whole files: what they parse to, and what refuses them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Replace, Write
from tests.helpers.reading import NEW, OLD_NEW, read, refused, said

UNREADABLE, TRUNCATED = "unreadable_edit", "truncated"
HALVES = "FIND:\n```python\nold\n```\n\nREPLACE WITH:\n```python\nnew\n```\n"
SEARCH = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
CHANGE = "### CHANGE 1: x\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nb\n```\n"


def test_the_documented_form() -> None:
    text = f"Intro.\n\nFILE: src/a.py\n\n### CHANGE 1: say hello\n{HALVES}\nBye.\n"
    (edit,) = read(text).edits
    assert edit.format == "find_replace"
    assert (edit.id, edit.path, edit.op) == ("1", "src/a.py", OLD_NEW)
    assert edit.description == "say hello"
    assert edit.at == (5, 14)


@pytest.mark.parametrize(
    ("above", "path"),
    [
        ("FILE: new/x.py\r", "new/x.py"),
        ("FILE: docs/my file.md", "docs/my file.md"),
        ("FILE: no ending", "no ending"),
        ("**FILE:** `src/a.py`", "src/a.py"),
        ("FILE: a/src/a.py", "src/a.py"),
        ("File: src/a.py", "src/a.py"),
        ("### `src/a.py`", "src/a.py"),
        ("FILE: src/a.py\n\nLike `src/b.py`.\n", "src/a.py"),
        ("FILE: src/a.py\n````\n", "src/a.py"),
    ],
)  # fmt: skip
def test_the_path(above: str, path: str) -> None:
    assert said(f"{above}\n{HALVES}") == [(path, OLD_NEW)]


def test_an_empty_find_creates_a_file() -> None:
    text = "FILE: src/new.py\nFIND:\n```\n```\nREPLACE WITH:\n```\nnew\n```\n"
    assert said(text) == [("src/new.py", NEW)]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("FILE: src/a.py\nFIND:\n", TRUNCATED, 2),
        ("FILE: src/a.py\nFIND:\n```\nold\n```\n", TRUNCATED, 2),
        (f"FILE: src/a.py\n{HALVES}\n### CHANGE 2: mo", TRUNCATED, 12),
        ("FILE: src/a.py\n\nREPLACE WITH:\n```\nnew\n```\n", UNREADABLE, 3),
        (f"FILE: src/a.py\n### CHANGE 1: x\n\n### CHANGE 2: y\n{HALVES}", UNREADABLE, 2),
        ("FILE: src/a.py\nFIND:\n```\n```\nREPLACE WITH:\n```\nnew\n```\n", UNREADABLE, 2),
        ("FILE: src/a.py\nFIND:\n```\n\n```\nREPLACE WITH:\n```\nnew\n```\n", UNREADABLE, 2),
        (f"FILE: src/a.py\n{HALVES}\nNow for src/b.py, too.\n{HALVES}", UNREADABLE, 13),
        (f"FILE: src/a.py\n{HALVES}\n`src/b.py` stays.\n\n### CHANGE 2: x\n{HALVES}", UNREADABLE,
            15),
        (f"FILE: src/a.py (see below)\n{HALVES}", UNREADABLE, 1),
        (f"- src/a.py\n- src/b.py\n\n{HALVES}", UNREADABLE, 4),
        ("FILE: src/a.py\nFIND:\n```\nold\n```\nREPLACE WITH:\nnew\n", UNREADABLE, 6),
        ("FILE: a.md\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nnew\n```\n\nSo:\n\n```\nb\n```\n",
            UNREADABLE, 7),
        ("FIND:\n</source>\n", UNREADABLE, 1),
        # whole files
        ("Hi\nFILE: src/a.py\n\n", TRUNCATED, 2),
        ("```md:README.md\n```sh\nx\n```\ny", TRUNCATED, 1),
        ("```md:README.md\na\n```\nsrc/a.py\n```\nb\n```\n", UNREADABLE, 1),
        ("FILE: src/a.py\nFILE: src/b.py\n", UNREADABLE, 1),
        ("FILE: src/a.py\nHere:\n```\nx\n```\nEND FILE", UNREADABLE, 1),
        ("FILE:\n```\nx\n```", UNREADABLE, 1),
        ("FILE: src/a.py\n```py:src/b.py\nx\n```", UNREADABLE, 2),
        ("`src/a.py`\n```py:src/b.py\nx\n```", UNREADABLE, 2),
        ("x\nEND FILE", UNREADABLE, 2),
        ("```py:src/a.py\na\n=======\nb\n>>>>>>> REPLACE\n```", UNREADABLE, 5),
        (f"FILE: src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4),
        (f"FILE: src/a.py\nx\n{SEARCH}END FILE", UNREADABLE, 3),
        (f"src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4),
    ],
)  # fmt: skip
def test_refusals(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


LINES = ["FILE: src/a.py", "FIND:", "REPLACE WITH:", "```", "````", "<source>", "old", "", "\r"]
any_line = st.one_of(st.sampled_from(LINES), st.text("`~FIND:*#() \r", max_size=20))
halves = st.lists(any_line, min_size=1, max_size=8).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(halves.filter(str.strip), halves)
def test_what_is_written_in_longer_fences_is_read_again(old: str, new: str) -> None:
    fence = "`" * (max(len(old), len(new), 2) + 1)
    text = f"FILE: src/a.py\nFIND:\n{fence}\n{old}{fence}\nREPLACE WITH:\n{fence}\n{new}{fence}\n"
    assert said(text) == [("src/a.py", Replace(old, new))]


def written(text: str) -> list[tuple[str, str]]:
    return [(edit.path, edit.op.text) for edit in read(text).edits if isinstance(edit.op, Write)]


def test_a_file_line_over_text() -> None:
    text = "FILE: src/a.py\n\nx = 1\n\ny = 2\n\nFILE: src/b.py\n\nz\n\nEND FILE\n"
    edits = read(text).edits
    assert [edit.op for edit in edits] == [Write("x = 1\n\ny = 2\n"), Write("\nz\n\n")]
    assert [edit.at for edit in edits] == [(1, 5), (7, 11)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi.\n\n```python:src/a.py\nx = 1\n\n```\nBye.\n", [("src/a.py", "x = 1\n\n")]),
        ("FILE: src/a.py\n\n```python\nx = 1\n```\n\nEND FILE\nBye.", [("src/a.py", "x = 1\n")]),
        ("```c++:a/src/a.py\na\n```", [("src/a.py", "a\n")]),
        ("```python:src/a.py\n```", [("src/a.py", "")]),
        ("FILE: my notes\n```\na\n```", [("my notes", "a\n")]),
        ("````md:README.md\na\n```\nb\n```\n````\n\nDone:\n\n```sh\nmake\n```",
            [("README.md", "a\n```\nb\n```\n")]),
        ("`````\n```md:README.md\na\n```\n`````\n", [("README.md", "a\n")]),
        ("FILE: src/a.py\n```\na\n```\nFILE: src/b.py\n```\nb\n```\n",
            [("src/a.py", "a\n"), ("src/b.py", "b\n")]),
        ("FILE: README.md\n# A\n```sh\nmake\n```\nEND FILE",
            [("README.md", "# A\n```sh\nmake\n```\n")]),
        (f"```markdown:docs/form.md\nSo:\n{SEARCH}```\n", [("docs/form.md", f"So:\n{SEARCH}")]),
        ("````md:docs/form.md\n*** Add this\n```\n*** Begin Patch\n```\n````\n",
            [("docs/form.md", "*** Add this\n```\n*** Begin Patch\n```\n")]),
        ("<source>\n```\n</source>", []),
        # under a path
        ("### `src/a.py`\n\n```\nx\n```", []), ("```\nx\n```\n# src/n.py\n", []),
        ("Makefile\n```\nx\n```", [("Makefile", "x\n")]),
        ("src/a.py\n<source>\n```\n</source>", [("src/a.py", "```\n")]),
    ],
)  # fmt: skip
def test_what_writes(text: str, expected: list[tuple[str, str]]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "```python title=src/a.py\nx\n```", "```12:15:src/a.py\nx\n```",
        "```python:src/a.py:12-15\nx\n```", "## FILE: src/a.py\n\nIt greets.",
        f"FILE: src/a.py\n{SEARCH}", "FILE: src/a.py\n```diff\n-a\n+b\n```",
        "```diff:src/a.py\n@@ -1 +1 @@\n-a\n+b\n```",
        "FILE: src/a.py\n*** Begin Patch\n*** End Patch",
        f"FILE: src/a.py\n\nIt greets.\n\n{CHANGE}",
    ],
)  # fmt: skip
def test_what_does_not_write(text: str) -> None:
    assert written(text) == []
