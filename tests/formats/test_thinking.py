"""Thinking blocks are blanked, and no line moves."""

from __future__ import annotations

import pytest

from patchq.formats.marks.lines import blank_thought, closes_thought, opens_thought, without_close


@pytest.mark.parametrize(
    ("text", "end", "left"),
    [
        pytest.param("<think>\na\n</think>\nb", 2, "\n\n\nb", id="lines"),
        pytest.param("<think>a</think>b\nc", 0, "b\nc", id="one-line"),
        pytest.param("<think>a\nb</think> c\nd", 1, "\n c\nd", id="rest-of-the-line"),
        pytest.param("<think>a</think><think>\nb</think>c", 1, "\nc", id="two-at-once"),
        pytest.param("<thinking>a</think>\n</thinking>b", 1, "\nb", id="its-own-tag-ends-it"),
        pytest.param("<think>\n<think>\n</think>\n</think>", 2, "\n\n\n</think>", id="no-nesting"),
        pytest.param("<think>\na", None, "<think>\na", id="never-closed"),
        pytest.param("<think></think><think>", None, "<think></think><think>", id="second-open"),
    ],
)
def test_blank_thought(text: str, end: int | None, left: str) -> None:
    lines = text.split("\n")
    assert blank_thought(lines, 0) == end
    assert lines == left.split("\n")


@pytest.mark.parametrize(
    ("line", "opens", "closes"),
    [
        ("<think>", True, False),
        ("<thinking>x", True, False),
        (" <think>", False, False),
        ("so <think>", False, False),
        ("<thinker>", False, False),
        ("</think>", False, True),
        ("x</think>", False, False),
    ],
)
def test_tags_count_at_the_start_of_a_line(line: str, opens: bool, closes: bool) -> None:
    assert bool(opens_thought(line)) is opens
    assert bool(closes_thought(line)) is closes


def test_text_behind_the_closing_tag_stays() -> None:
    assert without_close("</think>src/a.py</think>") == "src/a.py</think>"
