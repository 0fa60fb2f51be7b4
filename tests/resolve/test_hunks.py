"""Hunks of diffs and chunks of V4A patches."""

from __future__ import annotations

import pytest

from patchq.model.ops import InsertAt, PatchHunk
from tests.helpers.ops import batch, plan, result

TWICE = "class A\n  x\nclass B\n  x\n"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class B",)), TWICE[:-2] + "y\n"),
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class A",)), "match.ambiguous"),
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class C",)), "match.ambiguous"),
        (TWICE, PatchHunk("  x\n", "  y\n", at_end=True), TWICE[:-2] + "y\n"),
        ("a\nb\n", PatchHunk("a\n", "c\n", at_end=True), "match.none"),
        ("a\nb\na\nc\nb\n", PatchHunk("b\n", "x\n", scopes=("a", "c")), "match.ambiguous"),
        ("a\nb\nc\nb\n", PatchHunk("b\n", "x\n", scopes=(" a ", "c")), "a\nb\nc\nx\n"),
        ("a\nb\n", PatchHunk("", "x\n", scopes=("a",)), "a\nx\nb\n"),
        ("a\nb\n", PatchHunk("", "x\n", at_end=True), "a\nb\nx\n"),
        ("", PatchHunk("", "x\n"), "x\n"),
        ("a\nb\n", PatchHunk("", "x\n"), "match.none"),
        ("a\na\n", PatchHunk("", "x\n", scopes=("a",)), "match.none"),
        ("a\nx\n", PatchHunk("", "x\n", scopes=("a",)), "already"),
        ("* a\nb\n", PatchHunk(" * a\nb\n", " * a\nc\n", bare=("* a\nb\n", "* a\nc\n")),
         "* a\nc\n"),
        ("a\nb", PatchHunk("b\n", "c\n"), "a\nc\n"),
        ("a\nb", PatchHunk("b\n", "c\n", final_newline=False), "a\nc"),
        ("a\nb\n", PatchHunk("b\n", "c\n", final_newline=False), "a\nc"),
        ("a\nb", PatchHunk("a\n", "c\n"), "c\nb"),
        ("a\r\nb", PatchHunk("b\n", "b\nc\n"), "a\r\nb\r\nc\r\n"),
        ("a\nc\n", PatchHunk("a\nb\n", "a\nc\n"), "already"),
    ],
    ids=[
        "behind its scope", "two behind its scope", "an unknown scope", "at the end",
        "not at the end", "a scope that is not unique", "stacked scopes", "added behind the scope",
        "added at the end", "added to an empty file", "added nowhere", "an ambiguous scope",
        "added already", "context as it stands", "a newline at the end", "none as before",
        "none any more", "another line changes", "added behind the last line", "already there",
    ],
)  # fmt: skip
def test_hunk(before: str, op: PatchHunk, after: str) -> None:
    assert result(before, op) == after


@pytest.mark.parametrize(
    ("ops", "declared", "after"),
    [
        ((PatchHunk("a\n", "b\n", line=3),), True, "a\nx\nb\n"),
        ((PatchHunk("a\n", "b\n", line=3),), False, "match.ambiguous"),
        ((PatchHunk("a\n", "b\n", line=2),), True, "match.ambiguous"),
        ((PatchHunk("a\n", "b\n", line=3), PatchHunk("x\n", "y\n", line=2)), True, "a\ny\nb\n"),
        ((PatchHunk("a\n", "b\n", line=3), PatchHunk("x\n", "y\n", line=1)), True,
         "match.ambiguous"),
    ],
    ids=["on a declared base", "not declared", "not nearest", "others agree", "one contradicts"],
)  # fmt: skip
def test_stated_lines(ops: tuple[PatchHunk, ...], declared: bool, after: str) -> None:
    assert result("a\nx\na\n", *ops, declared=declared) == after


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("a\nb\n", InsertAt(1, "x"), "a\nx\nb\n"),
        ("a\nb", InsertAt(2, "x\n"), "a\nb\nx"),
        ("a\r\n", InsertAt(0, "x\n\n"), "x\r\n\r\na\r\n"),
        ("a\n", InsertAt(2, "x\n"), "match.none"),
        ("a\nx\n", InsertAt(1, "x\n"), "already"),
    ],
)
def test_insert_at(before: str, op: InsertAt, after: str) -> None:
    assert result(before, op) == after


def test_an_insertion_by_number_is_blind() -> None:
    assert plan("a\n", batch(InsertAt(1, "x\n"))).blind == ("f.txt",)
    assert plan("a\n", batch(PatchHunk("a\n", "b\n"))).blind == ()
