"""A batch side by side: rows, the edits that they come from, marks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.values import FileChange
from patchq.gate.report.schema import Report
from patchq.gate.review.rows import FileRows, Row, side_by_side, word_marks
from tests.helpers.outcomes import EVIL, GOOD, PROPOSED, to_json

Edit = tuple[str, tuple[int, int] | None]  # its id and its lines on the base


def reported(*edits: Edit) -> Report:
    made = (replace(GOOD, id=id, state="applied", lines=at, path="a.py") for id, at in edits)
    return to_json(replace(PROPOSED, edits=tuple(made), problems=()))


def shown(old: str | bytes, new: str | bytes, *edits: Edit) -> FileRows:
    before, after = (text.encode() if isinstance(text, str) else text for text in (old, new))
    (file,) = side_by_side(reported(*edits), [FileChange("a.py", before, after)])
    return file


def brief(row: Row) -> str:
    """A row as a few letters: its kind, its lines, its edits."""
    lines = "/".join(str(cell.line) if cell else "-" for cell in (row.old, row.new))
    edits = f" [{','.join(row.edits)}]" if row.edits else ""
    return f"{row.kind[0]} {lines}{edits}"


@pytest.mark.parametrize(
    ("old", "new", "edits", "expected"),
    [
        ("x = 1\n", "x = 2\n", [("1", (1, 1))], ["c 1/1 [1]"]),
        ("", "x\ny\n", [("1", None)], ["a -/1 [1]", "a -/2 [1]"]),
        ("x\ny\n", "x\n", [("1", (2, 2))], ["s 1/1", "r 2/- [1]"]),
        # an insertion belongs to the edit whose anchor it borders on
        ("x\ny\n", "x\nnew\ny\n", [("1", (1, 1)), ("2", (9, 9))], ["s 1/1", "a -/2 [1]", "s 2/3"]),
        # a new line goes with the old one before it
        ("a 1\nb 1\n", "a 2\nnew\nb 2\n", [("1", (1, 1)), ("2", (2, 2))],
         ["c 1/1 [1]", "a -/2 [1]", "c 2/3 [2]"]),
        # the narrower quote is the one that is meant
        ("a 1\nb 1\nc\n", "a 2\nb 2\nc\n", [("1", (1, 3)), ("2", (2, 2))],
         ["c 1/1 [1]", "c 2/2 [2]", "s 3/3"]),
        # one that has no place on the base, since it stands on another one
        ("x\n", "y\n", [("1", (9, 9)), ("2", None)], ["c 1/1 [2]"]),
        # lines that belong together stand side by side
        ("def f(a):\n    return a\n", "import b\n\ndef f(a, c):\n    return a\n", [("1", (1, 1))],
         ["a -/1 [1]", "a -/2 [1]", "c 1/3 [1]", "s 2/4"]),
        ("x\n", "x\n", [("1", (1, 1))], []),
    ],
)  # fmt: skip
def test_rows(old: str, new: str, edits: list[Edit], expected: list[str]) -> None:
    assert [brief(row) for row in shown(old, new, *edits).rows] == expected


@pytest.mark.parametrize(
    ("old", "new", "ours", "theirs"),
    [
        ("value = total", "value = round(total)", [], ["round(", ")"]),
        ("x" * 3000, "x" * 3000 + "y", [], []),
        ("wholly different", "nothing alike in it", [], []),
        ("  indented", "    indented", ["  "], ["    "]),
    ],
)
def test_words_that_differ_are_marked(
    old: str, new: str, ours: list[str], theirs: list[str]
) -> None:
    left, right = word_marks(old, new)
    assert [old[first:end] for first, end in left] == ours
    assert [new[first:end] for first, end in right] == theirs


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ("a\r\nb\r\n", "a\r\nc\r\n", [("a", "a"), ("b", "c")]),
        (EVIL, "x\n", None),
        ("a\0b\n", "x\n", []),
        (b"\xff\xfe\n", b"\xffx\n", [("\\xff\\xfe", "\\xffx")]),
    ],
)
def test_texts_are_safe_to_show(
    old: str | bytes, new: str | bytes, texts: list[tuple[str, str]] | None
) -> None:
    file = shown(old, new, ("1", (1, 1)))
    pairs = [tuple(cell.text if cell else "" for cell in (row.old, row.new)) for row in file.rows]
    assert texts is None or pairs == texts
    assert not set("".join(map("".join, pairs))) & set("\x1b\x07\x9b\u202e\u200b\0\r")
    assert file.binary == (texts == [])


def test_files_in_order_with_what_became_of_them() -> None:
    changes = [
        FileChange("z.py", None, b"new\n"),
        FileChange("b.py", b"a\n", b"b\n", renamed_from="a.py"),
        FileChange("c.py", b"a\n", None),
    ]
    files = side_by_side(reported(("1", (1, 1))), changes)
    told = [(file.path, file.what) for file in files]
    assert told == [("b.py", "renamed"), ("c.py", "deleted"), ("z.py", "created")]
