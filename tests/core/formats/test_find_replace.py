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
        ("FILE: src/a.py", "src/a.py"),
        ("FILE: new/x.py\r", "new/x.py"),
        ("FILE: docs/my file.md", "docs/my file.md"),
        ("FILE: no ending", "no ending"),
        ("FILE: Dockerfile", "Dockerfile"),
        ("**FILE:** `src/a.py`", "src/a.py"),
        ("## FILE: src/a.py", "src/a.py"),
        ("FILE: a/src/a.py", "src/a.py"),
        ("File: src/a.py", "src/a.py"),
        ("### `src/a.py`", "src/a.py"),
        ("FILE: src/a.py\n\nLike `src/b.py`.\n", "src/a.py"),
        ("FILE: src/a.py\n````\n", "src/a.py"),
    ],
)  # fmt: skip
def test_the_path(above: str, path: str) -> None:
    assert said(f"{above}\n{HALVES}") == [(path, OLD_NEW)]


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("### CHANGE 1: greet", "greet"),
        ("**Change 1:** greet", "greet"),
        ("# Change #2 - greet", "greet"),
        ("CHANGE: greet", "greet"),
        ("Change the greeting:", None),
        ("Change 1.5 to 2.", None),
    ],
)  # fmt: skip
def test_the_description(line: str, description: str | None) -> None:
    (edit,) = read(f"FILE: src/a.py\n{line}\n{HALVES}").edits
    assert edit.description == description


# ---------------------------------------------------------------- halves


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("~~~\nold\n~~~", "`````py\nnew\n`````", OLD_NEW),
        ("```\nold\n```", "```\n```", Replace("old\n", "")),
        ("```\r\nold\r\n```\r", "```\nnew\n```", Replace("old\r\n", "new\n")),
        ("```\nREPLACE WITH:\n```", "```\nFIND:\n```", Replace("REPLACE WITH:\n", "FIND:\n")),
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
        ("FILE: src/a.py\nFIND:\n```\na\n```\nREPLACE WITH:\n```\nnew\n```\nmake\n```\nb\n```\n",
            UNREADABLE, 7),
        ("FIND:\n</source>\n", UNREADABLE, 1),
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
