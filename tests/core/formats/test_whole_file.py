"""Whole files: which forms write, which may only quote, and what refuses them."""

from __future__ import annotations

import pytest

from patchq.core.model.ops import Write
from tests.helpers.reading import read, refused, said

SEARCH = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
CHANGE = "### CHANGE 1: x\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nb\n```\n"


def written(text: str) -> list[tuple[str, str]]:
    return [(edit.path, edit.op.text) for edit in read(text).edits if isinstance(edit.op, Write)]


# ---------------------------------------------------------------- the forms that write


def test_a_fence_with_a_path_behind_a_colon() -> None:
    (edit,) = read("Intro.\n\n```python:src/a.py\nx = 1\n\n```\nBye.\n").edits
    assert (edit.format, edit.path, edit.op) == ("whole_file", "src/a.py", Write("x = 1\n\n"))
    assert edit.at == (3, 6)


def test_a_file_line_over_a_fence() -> None:
    (edit,) = read("FILE: src/a.py\n\n```python\nx = 1\n```\n\nEND FILE\nBye.").edits
    assert (edit.path, edit.op) == ("src/a.py", Write("x = 1\n"))
    assert edit.at == (1, 7)


def test_a_file_line_over_text() -> None:
    text = "FILE: src/a.py\n\nx = 1\n\ny = 2\n\nFILE: src/b.py\n\nz\n\nEND FILE\n"
    edits = read(text).edits
    assert [edit.op for edit in edits] == [Write("x = 1\n\ny = 2\n"), Write("\nz\n\n")]
    assert [edit.at for edit in edits] == [(1, 5), (7, 11)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```text:Makefile\na\n```", [("Makefile", "a\n")]),
        ("```c++:a/src/a.py\na\n```", [("src/a.py", "a\n")]),
        ("```python:src/a.py\n```", [("src/a.py", "")]),
        ("FILE: docs/my file.md\n```\n```", [("docs/my file.md", "")]),
        ("FILE: my notes\n```\na\n```", [("my notes", "a\n")]),
        ("**FILE:** `src/a.py`\n```\na\n```", [("src/a.py", "a\n")]),
        ("### FILE: src/a.py\n```\na\n```", [("src/a.py", "a\n")]),
        ("FILE: src/a.py\nEND FILE", [("src/a.py", "")]),
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


# ---------------------------------------------------------------- under a path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("### `src/a.py`\n\n```\nx\n```", [], id="dressed"),
        pytest.param("Makefile\n```\nx\n```", [("Makefile", "x\n")], id="word-of-the-base"),
        pytest.param("src/a.py\n<source>\n```\n</source>", [("src/a.py", "```\n")], id="tag"),
        pytest.param("```\nx\n```\n# src/n.py\n", [], id="comment-behind-a-fence"),
    ],
)
def test_files_under_a_path(text: str, expected: list[tuple[str, str]]) -> None:
    assert said(text) == [(path, Write(written, quoting=True)) for path, written in expected]


# ---------------------------------------------------------------- refusals


UNREADABLE, TRUNCATED = "unreadable_edit", "truncated"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("Hi\nFILE: src/a.py\n\n", TRUNCATED, 2),
        ("```md:README.md\n```sh\nx\n```\ny", TRUNCATED, 1),
        ("```md:README.md\na\n```\nsrc/a.py\n```\nb\n```\n", UNREADABLE, 1),
        ("FILE: src/a.py\nFILE: src/b.py\n", UNREADABLE, 1),
        ("FILE: src/a.py\nHere:\n```\nx\n```\nEND FILE", UNREADABLE, 1),
        ("FILE:\n```\nx\n```", UNREADABLE, 1),
        ("FILE: src/a.py (lines 1-9)\n```\nx\n```", UNREADABLE, 1),
        ("FILE: src/a.py\n```py:src/b.py\nx\n```", UNREADABLE, 2),
        ("`src/a.py`\n```py:src/b.py\nx\n```", UNREADABLE, 2),
        ("x\nEND FILE", UNREADABLE, 2),
        ("```py:src/a.py\na\n=======\nb\n>>>>>>> REPLACE\n```", UNREADABLE, 5),
        (f"FILE: src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4),
        (f"FILE: src/a.py\nx\n{SEARCH}END FILE", UNREADABLE, 3),
    ],
)  # fmt: skip
def test_refusals(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("src/a.py\n```python\nx\n", TRUNCATED, 2),
        (f"src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4),
    ],
)  # fmt: skip
def test_refusals_where_it_may_quote(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


@pytest.mark.parametrize(
    "text", ["FILE: src/a.py\n```\nx\ny\n```", "FILE: src/a.py\nx\ny\nEND FILE", "```:a.py\nx\n```"]
)
def test_a_cut_response_never_writes_a_part(text: str) -> None:
    for length in range(text.index("x"), len(text)):
        assert read(text[:length]).edits == ()
    assert len(read(text).edits) == 1
