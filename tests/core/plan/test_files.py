"""Whole files, written or deleted."""

from __future__ import annotations

import pytest

from patchq.core.model.ops import DeleteFile, Op, Replace, Write
from tests.helpers.ops import batch, plan, result
from tests.helpers.trees import told

TEN = "".join(f"{i}\n" for i in range(10))


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a\nb\n", "a\nc\n", "a\nc\n"),
        ("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nd\n", "a\r\nb\nd\r\n"),
        ("a\nb", "a\nc\n", "a\nc\n"),
        ("a\nb\n", "a\nc", "a\nc"),
        ("a\nb", "a\nb\n", "a\nb\n"),
        ("\ufeffa\nb\n", "a\nc\n", "\ufeffa\nc\n"),
        ("\ufeffa\nb\n", "\ufeffa\nc\n", "\ufeffa\nc\n"),
        ("a\r\nb\r\n", "a\nb\n", "already"),
        ("a\nb\n", "a\nb\n", "already"),
        ("", "a\n", "a\n"),
        (TEN, "0\n1\n2\n3\n4\n", "0\n1\n2\n3\n4\n"),
        (TEN, "0\n1\n2\n3\n\n\n\n", "edit.shrinks"),
        (TEN, "", "edit.shrinks"),
        ("a\n\0", "b\n", "file.binary"),
    ],
    ids=[
        "a line", "CRLF", "mixed", "a newline at the end", "none at the end", "the newline alone",
        "BOM", "BOM in both", "the same but its line ends", "the same", "an empty file", "half",
        "less than half", "emptied", "binary",
    ],
)  # fmt: skip
def test_write(before: str, text: str, after: str) -> None:
    assert result(before, Write(text)) == after


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (TEN.replace("5\n", "five\n"), True),
        (TEN.replace("0\n", "zero\n"), True),
        ("0\n1\n2\n3\n4\nx\n9\n", True),
        ("0\n1\n2\n3\nx\n9\n", False),
        (TEN.replace("0\n", "zero\n").replace("5\n", "five\n"), False),
        ("9\n" + TEN[2:-2] + "0\n", False),
    ],
    ids=[
        "one line changed", "nine in ten", "the ends and half of the others",
        "the ends and less than half", "eight in ten without an end", "another order",
    ],
)  # fmt: skip
def test_what_may_be_an_excerpt_has_to_keep_most(text: str, written: bool) -> None:
    done = result(TEN, Write(text, quoting=True))
    assert done == (text if written else "response.unreadable_edit")


@pytest.mark.parametrize(
    "ops", [(Write("b\n"), Replace("a\n", "c\n")), (Write("b\n"), Write("c\n"))]
)
def test_a_written_file_is_not_changed_besides(ops: tuple[Op, ...]) -> None:
    assert result("a\n", *ops) == "conflict.overlap"
    assert result("a\n", *ops[::-1]) == "conflict.overlap"


@pytest.mark.parametrize(
    ("before", "old", "code"),
    [
        ("a\nb\n", "a\nb\n", None), ("a\r\nb", "a\nb\n", None), ("a\nb\n", "a\n", "match.none"),
        ("a\nb\n", "a\nc\n", "match.none"), ("x\nx\n", "x\n", "match.none"), ("", "", None),
        ("a\n", "", "match.none"),
    ],
)  # fmt: skip
def test_a_deletion_may_quote_the_file(before: str, old: str, code: str | None) -> None:
    done = plan(before, batch(DeleteFile(old)))
    assert told(done) == ([code] if code else [])
    assert [change.after for change in done.changes] == ([] if code else [None])


@pytest.mark.parametrize(
    ("op", "blind"),
    [(DeleteFile(), True), (DeleteFile("a\n"), False), (Write("b\n"), True)],
)
def test_who_quotes_nothing_is_blind(op: Op, blind: bool) -> None:
    assert plan("a\n", batch(op)).blind == (("f.txt",) if blind else ())
