"""Fence lines, and which of them are open."""

from __future__ import annotations

import pytest

from patchq.core.formats.marks.fences import Fence, Fences, fence


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("```", Fence("`", 3), id="bare"),
        pytest.param("```python\r", Fence("`", 3, "python"), id="info-crlf"),
        pytest.param("```` python src/a.py ", Fence("`", 4, "python src/a.py"), id="four"),
        pytest.param("   ~~~", Fence("~", 3), id="tilde-indented"),
        pytest.param("~~~a`b", Fence("~", 3, "a`b"), id="tilde-info-with-backtick"),
        pytest.param("    ```", None, id="indented-four"),
        pytest.param("``", None, id="two"),
        pytest.param("```x``` is code", None, id="inline-code"),
        pytest.param("a ```", None, id="behind-text"),
        pytest.param("<source>python", Fence("source", 1, "python"), id="tag"),
        pytest.param("</pre>", Fence("pre", 1, closing=True), id="closing-tag"),
        pytest.param("<code>x</code>", None, id="inline-tag"),
        pytest.param("<div>", None, id="other-tag"),
        pytest.param("", None, id="blank"),
    ],
)
def test_fence(line: str, expected: Fence | None) -> None:
    assert fence(line) == expected


@pytest.mark.parametrize(
    ("opening", "other", "expected"),
    [
        pytest.param("```", "```", True, id="same"),
        pytest.param("```", "`````", True, id="longer"),
        pytest.param("````", "```", False, id="shorter"),
        pytest.param("```", "```python", False, id="with-info"),
        pytest.param("```", "~~~", False, id="other-kind"),
        pytest.param("<source>", "</source>", True, id="tag"),
        pytest.param("<source>", "<source>", False, id="tag-again"),
        pytest.param("<source>", "</code>", False, id="other-tag"),
    ],
)
def test_closed_by(opening: str, other: str, expected: bool) -> None:
    one, two = fence(opening), fence(other)
    assert one is not None
    assert two is not None
    assert one.closed_by(two) is expected


@pytest.mark.parametrize(
    ("lines", "opened"),
    [
        pytest.param(["```", "```", "```"], [0, 2], id="alternate"),
        pytest.param(["```", "```python", "```", "```"], [0, 1], id="info-nests"),
        pytest.param(["````", "```", "```", "````", "```"], [0, 4], id="shorter-is-text"),
        pytest.param(["</source>", "<source>", "</source>"], [1], id="tags"),
    ],
)
def test_open_fences(lines: list[str], opened: list[int]) -> None:
    fences = Fences(lines)
    for i in range(len(lines)):
        fences.read(i)
    assert [i for i in range(len(lines)) if fences.opened(i)] == opened


def test_only_fences_round_a_block_are_wrappers() -> None:
    fences = Fences(["```", "```", "````", "````"])
    for i in range(4):
        fences.read(i)
        if i == 2:
            fences.hold_block()
    assert fences.wrappers == {2, 3}


def test_lines_that_change_are_looked_at_again() -> None:
    lines = ["```", "> ```", "> x", "> ```", "```"]
    fences = Fences(lines)
    lines[1:4] = ["~~~", "x", "~~~"]
    fences.look_again(1, 4)
    assert [i for i, _ in fences.behind(-1)] == [0, 1, 3, 4]
