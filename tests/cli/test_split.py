"""A change side by side on a terminal or in a pipe."""

from __future__ import annotations

import pytest

from patchq.cli import show
from patchq.core.model.values import FileChange
from patchq.gate.review.rows import side_by_side
from tests.gate.review.test_rows import reported


def drawn(old: str, new: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(show, "_IN_A_PIPE", columns)
    change = FileChange("a.py", old.encode(), new.encode())
    files = side_by_side(reported(("1", (1, 1)), ("2", (2, 2))), [change])
    return ["".join(piece.text for piece in line) for line in show.side_by_side(files)]


def row(a: int | str, left: str, edits: str, b: int | str, right: str) -> str:
    return f"{a:>5} {left:<21} {edits:^4} {b:>5} {right}".rstrip()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a 1\nb\n", "a 2\nb\nc\n", [
            row(1, "a 1", "1", 1, "a 2"), row(2, "b", "", 2, "b"), row("", "", "2", 3, "c")]),
        ("a\n", "", [row(1, "a", "1", "", "")]),
        ("", "x" * 25, [
            row("", "", "1", 1, "x" * 21), row("", "", "", "", "xxxx (no line end)")]),
        ("", "\u6f22" * 12 + "\n", [
            row("", "", "1", 1, "\u6f22" * 10), row("", "", "", "", "\u6f22\u6f22")]),
        ("x\n" * 9 + "y\n", "x\n" * 9 + "z\x1b\n", [
            "      … 6 more lines …", *(row(n, "x", "", n, "x") for n in (7, 8, 9)),
            row(10, "y", "", 10, "z\\x1b")]),
    ],
)  # fmt: skip
def test_both_sides_with_their_numbers_and_the_edits_between(
    old: str, new: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    title, *lines = drawn(old, new, 60, monkeypatch)
    assert title.startswith("a.py  changed  +")
    assert [line.rstrip() for line in lines] == expected
