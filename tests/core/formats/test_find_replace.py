"""FIND/REPLACE blocks: what they parse to, and what refuses them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Create, Replace
from tests.helpers.reading import OLD_NEW, read, refused, said

HALVES = "FIND:\n```python\nold\n```\n\nREPLACE WITH:\n```python\nnew\n```\n"


# ---------------------------------------------------------------- the form as documented


def test_the_documented_form() -> None:
    text = f"Intro.\n\nFILE: src/a.py\n\n### CHANGE 1: say hello\n{HALVES}\nBye.\n"
    (edit,) = read(text).edits
    assert edit.format == "find_replace"
    assert (edit.id, edit.path, edit.op) == ("1", "src/a.py", OLD_NEW)
    assert edit.description == "say hello"
    assert edit.at == (5, 14)


# ---------------------------------------------------------------- headings


@pytest.mark.parametrize(
    ("above", "path"),
    [
        pytest.param("FILE: src/a.py", "src/a.py", id="file"),
        pytest.param("FILE: new/x.py\r", "new/x.py", id="crlf"),
        pytest.param("FILE: docs/my file.md", "docs/my file.md", id="blank-in-path"),
        pytest.param("FILE: no ending", "no ending", id="one-path-to-the-end-of-the-line"),
        pytest.param("FILE: Dockerfile", "Dockerfile", id="word"),
        pytest.param("**FILE:** `src/a.py`", "src/a.py", id="bold-label"),
        pytest.param("## FILE: src/a.py", "src/a.py", id="heading"),
        pytest.param("FILE: a/src/a.py", "src/a.py", id="diff-prefix"),
        pytest.param("File: src/a.py", "src/a.py", id="file-in-lower-case"),
        pytest.param("### `src/a.py`", "src/a.py", id="path-heading"),
        pytest.param("FILE: src/a.py\n\nLike `src/b.py`.\n", "src/a.py", id="file-and-prose"),
        pytest.param("FILE: src/a.py\n````\n", "src/a.py", id="in-a-fence"),
    ],
)
def test_the_path(above: str, path: str) -> None:
    assert said(f"{above}\n{HALVES}") == [(path, OLD_NEW)]


@pytest.mark.parametrize(
    ("line", "description"),
    [
        pytest.param("### CHANGE 1: greet", "greet", id="as-documented"),
        pytest.param("**Change 1:** greet", "greet", id="bold-label"),
        pytest.param("# Change #2 - greet", "greet", id="dash"),
        pytest.param("CHANGE: greet", "greet", id="without-number"),
        pytest.param("Change the greeting:", None, id="prose"),
        pytest.param("Change 1.5 to 2.", None, id="prose-with-a-number"),
    ],
)
def test_the_description(line: str, description: str | None) -> None:
    (edit,) = read(f"FILE: src/a.py\n{line}\n{HALVES}").edits
    assert edit.description == description


# ---------------------------------------------------------------- halves


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("~~~\nold\n~~~", "`````py\nnew\n`````", OLD_NEW, id="any-fence"),
        pytest.param("```\nold\n```", "```\n```", Replace("old\n", ""), id="deletes"),
        pytest.param("```\r\nold\r\n```\r", "```\nnew\n```", Replace("old\r\n", "new\n"), id="cr"),
        pytest.param(
            "```\nREPLACE WITH:\n```", "```\nFIND:\n```", Replace("REPLACE WITH:\n", "FIND:\n"),
            id="labels-as-text",
        ),
    ],
)  # fmt: skip
def test_halves(old: str, new: str, expected: Replace) -> None:
    assert said(f"FILE: README.md\nFIND:\n{old}\nREPLACE WITH:\n{new}\n") == [
        ("README.md", expected)
    ]


def test_an_empty_find_creates_a_file() -> None:
    text = "FILE: src/new.py\nFIND:\n```\n```\nREPLACE WITH:\n```\nnew\n```\n"
    assert said(text) == [("src/new.py", Create("new\n"))]


# ---------------------------------------------------------------- refusals


UNREADABLE, TRUNCATED = "unreadable_edit", "truncated"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("FILE: src/a.py\nFIND:\n", TRUNCATED, 2, id="cut-behind-find"),
        pytest.param("FILE: src/a.py\nFIND:\n```\nold\n```\n", TRUNCATED, 2, id="cut-after-find"),
        pytest.param(f"FILE: src/a.py\n{HALVES}\n### CHANGE 2: mo", TRUNCATED, 12, id="cut-label"),
        pytest.param(
            "FILE: src/a.py\n\nREPLACE WITH:\n```\nnew\n```\n", UNREADABLE, 3, id="no-find"
        ),
        pytest.param(
            f"FILE: src/a.py\n### CHANGE 1: x\n\n### CHANGE 2: y\n{HALVES}",
            UNREADABLE, 2, id="no-half",
        ),
        pytest.param(
            "FILE: src/a.py\nFIND:\n```\n```\nREPLACE WITH:\n```\nnew\n```\n",
            UNREADABLE, 2, id="creates-what-exists",
        ),
        pytest.param(
            "FILE: src/a.py\nFIND:\n```\n\n```\nREPLACE WITH:\n```\nnew\n```\n",
            UNREADABLE, 2, id="blank-find",
        ),
        pytest.param(
            f"FILE: src/a.py\n{HALVES}\nNow for src/b.py, too.\n{HALVES}",
            UNREADABLE, 13, id="another-path-in-between",
        ),
        pytest.param(
            f"FILE: src/a.py\n{HALVES}\n`src/b.py` stays.\n\n### CHANGE 2: x\n{HALVES}",
            UNREADABLE, 15, id="another-path-told-of",
        ),
        pytest.param(f"FILE: src/a.py (see below)\n{HALVES}", UNREADABLE, 1, id="path-and-more"),
        pytest.param(f"- src/a.py\n- src/b.py\n\n{HALVES}", UNREADABLE, 4, id="list-of-paths"),
        pytest.param(
            "FILE: src/a.py\nFIND:\n```\nold\n```\nREPLACE WITH:\nnew\n",
            UNREADABLE, 6, id="bare-replace-at-the-end",
        ),
        pytest.param(
            "FILE: a.md\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nnew\n```\n\nSo:\n\n```\nb\n```\n",
            UNREADABLE, 7, id="fence-in-replace-of-markdown",
        ),
        pytest.param(
            "FILE: src/a.py\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nnew\n```\nmake\n```\nb\n```\n",
            UNREADABLE, 7, id="fence-in-replace",
        ),
        pytest.param("FIND:\n</source>\n", UNREADABLE, 1, id="fence-that-ends"),
    ],
)  # fmt: skip
def test_refusals(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


# ---------------------------------------------------------------- every text


LINES = [
    "FILE: src/a.py", "FILE:", "File: src/b.py", "END FILE", "### CHANGE 1: x", "Change 2", "FIND:",
    "**Find:**", "find:", "FIND: old", "REPLACE WITH:", "REPLACE:", "Replace with: new", "```",
    "````", "```python", "~~~", "<source>", "</source>", "src/a.py", "In `src/b.py`:", "old", "",
    "\r", "---", "*" * 60, "FILE: " + "(" * 60,
]  # fmt: skip
any_line = st.one_of(
    st.sampled_from(LINES), st.text(max_size=12), st.text(alphabet="`~FIND:*#() \r", max_size=20)
)


plain_line = any_line.map(lambda line: line.replace("\n", ""))
halves = st.lists(plain_line, min_size=1, max_size=8).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(halves.filter(str.strip), halves)
def test_what_is_written_in_longer_fences_is_read_again(old: str, new: str) -> None:
    fence = "`" * (max(len(old), len(new), 2) + 1)
    text = f"FILE: src/a.py\nFIND:\n{fence}\n{old}{fence}\nREPLACE WITH:\n{fence}\n{new}{fence}\n"
    assert said(text) == [("src/a.py", Replace(old, new))]
