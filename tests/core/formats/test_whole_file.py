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
        pytest.param("```text:Makefile\na\n```", [("Makefile", "a\n")], id="word"),
        pytest.param("```c++:a/src/a.py\na\n```", [("src/a.py", "a\n")], id="diff-prefix"),
        pytest.param("```python:src/a.py\n```", [("src/a.py", "")], id="empty"),
        pytest.param("FILE: docs/my file.md\n```\n```", [("docs/my file.md", "")], id="blank"),
        pytest.param("FILE: my notes\n```\na\n```", [("my notes", "a\n")], id="rest-of-the-line"),
        pytest.param("**FILE:** `src/a.py`\n```\na\n```", [("src/a.py", "a\n")], id="bold"),
        pytest.param("### FILE: src/a.py\n```\na\n```", [("src/a.py", "a\n")], id="heading"),
        pytest.param("FILE: src/a.py\nEND FILE", [("src/a.py", "")], id="empty-unfenced"),
        pytest.param(
            "````md:README.md\na\n```\nb\n```\n````\n\nDone:\n\n```sh\nmake\n```",
            [("README.md", "a\n```\nb\n```\n")],
            id="longer-fence",
        ),
        pytest.param(
            "`````\n```md:README.md\na\n```\n`````\n",
            [("README.md", "a\n")],
            id="in-a-longer-fence",
        ),
        pytest.param(
            "FILE: src/a.py\n```\na\n```\nFILE: src/b.py\n```\nb\n```\n",
            [("src/a.py", "a\n"), ("src/b.py", "b\n")],
            id="file-line-right-under-a-fence",
        ),
        pytest.param(
            "FILE: README.md\n# A\n```sh\nmake\n```\nEND FILE",
            [("README.md", "# A\n```sh\nmake\n```\n")],
            id="markdown-up-to-end-file",
        ),
        pytest.param(
            f"```markdown:docs/form.md\nSo:\n{SEARCH}```\n",
            [("docs/form.md", f"So:\n{SEARCH}")],
            id="blocks-as-text",
        ),
        pytest.param(
            "````md:docs/form.md\n*** Add this\n```\n*** Begin Patch\n```\n````\n",
            [("docs/form.md", "*** Add this\n```\n*** Begin Patch\n```\n")],
            id="patch-as-text",
        ),
        pytest.param("<source>\n```\n</source>", [], id="tag-without-path"),
    ],
)  # fmt: skip
def test_what_writes(text: str, expected: list[tuple[str, str]]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```python title=src/a.py\nx\n```", id="attribute"),
        pytest.param("```12:15:src/a.py\nx\n```", id="citation"),
        pytest.param("```python:src/a.py:12-15\nx\n```", id="lines"),
        pytest.param("## FILE: src/a.py\n\nIt greets.", id="heading-over-prose"),
        pytest.param(f"FILE: src/a.py\n{SEARCH}", id="search"),
        pytest.param("FILE: src/a.py\n```diff\n-a\n+b\n```", id="diff-in-a-fence"),
        pytest.param("```diff:src/a.py\n@@ -1 +1 @@\n-a\n+b\n```", id="diff-with-path"),
        pytest.param("FILE: src/a.py\n*** Begin Patch\n*** End Patch", id="patch"),
        pytest.param(f"FILE: src/a.py\n\nIt greets.\n\n{CHANGE}", id="find-replace"),
    ],
)
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
        pytest.param("Hi\nFILE: src/a.py\n\n", TRUNCATED, 2, id="cut-behind-file"),
        pytest.param("```md:README.md\n```sh\nx\n```\ny", TRUNCATED, 1, id="cut-behind-inner"),
        pytest.param(
            "```md:README.md\na\n```\nsrc/a.py\n```\nb\n```\n", UNREADABLE, 1, id="tree-inside"
        ),
        pytest.param("FILE: src/a.py\nFILE: src/b.py\n", UNREADABLE, 1, id="list-of-files"),
        pytest.param(
            "FILE: src/a.py\nHere:\n```\nx\n```\nEND FILE", UNREADABLE, 1, id="text-above-the-fence"
        ),
        pytest.param("FILE:\n```\nx\n```", UNREADABLE, 1, id="no-path"),
        pytest.param("FILE: src/a.py (lines 1-9)\n```\nx\n```", UNREADABLE, 1, id="path-and-more"),
        pytest.param("FILE: src/a.py\n```py:src/b.py\nx\n```", UNREADABLE, 2, id="two-paths"),
        pytest.param("`src/a.py`\n```py:src/b.py\nx\n```", UNREADABLE, 2, id="two-paths-above"),
        pytest.param("x\nEND FILE", UNREADABLE, 2, id="stray-end"),
        pytest.param(
            "```py:src/a.py\na\n=======\nb\n>>>>>>> REPLACE\n```", UNREADABLE, 5, id="lost-search"
        ),
        pytest.param(f"FILE: src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4, id="text-and-block"),
        pytest.param(f"FILE: src/a.py\nx\n{SEARCH}END FILE", UNREADABLE, 3, id="unfenced-block"),
    ],
)  # fmt: skip
def test_refusals(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("src/a.py\n```python\nx\n", TRUNCATED, 2, id="cut"),
        pytest.param(f"src/a.py\n```\nx\n{SEARCH}```", UNREADABLE, 4, id="text-and-block"),
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
