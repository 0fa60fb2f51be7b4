"""Thinking blocks are blanked, and no line moves."""

from __future__ import annotations

import pytest

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.tags import blank_channels, blank_thought, opens_channel, thought_on


@pytest.mark.parametrize(
    ("text", "end", "left"),
    [
        pytest.param("<think>a</think>b\nc", 0, "b\nc", id="one-line"),
        pytest.param("<think>a\n</think><think>b</think>", 1, "\n<think>b</think>", id="two"),
        pytest.param("<think>\n<think>\n</think>\n</think>c", 3, "\n\n\nc", id="nested"),
        pytest.param("<think>\na <think> b\n</think>", 2, "\n\n", id="named-inside"),
        pytest.param("<think>\nno `</think>` yet\n</think>", 2, "\n\n", id="quoted-inside"),
        pytest.param("[THINK]\n</think>\n[/think]b", 2, "\n\nb", id="its-own-shape-ends-it"),
        pytest.param("<think>\n<think>\n</think>", None, "<think>\n<think>\n</think>", id="once"),
    ],
)
def test_blank_thought(text: str, end: int | None, left: str) -> None:
    doc = Document(text.split("\n"), {"a.py"}.__contains__)
    tag = thought_on(doc.lines[0])
    assert tag is not None
    assert blank_thought(doc, 0, tag) == end
    assert doc.lines == left.split("\n")


WORDS = ("think", "Thinking", "THOUGHT", "reasoning", "reflection", "scratchpad", "analysis")
SHAPES = ("<{}>", "<{} id='1'>", "<seed:{}>", "<my-{}>", "<a:b-{}>", "[{}]", "◁{}▷", "<|{}|>")


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_thinking_is_known_in_every_spelling(word: str, shape: str) -> None:
    opening = shape.format(word)
    closing = shape.format(word).replace(" id='1'", "")
    at = 2 if closing.startswith("<|") else 1
    closing = f"{closing[:at]}/{closing[at:]}"
    for text, closes in ((opening, False), (f"  {opening} so", False), (f"{closing}b", True)):
        tag = thought_on(text)
        assert tag is not None, text
        assert tag.closes is closes, text


@pytest.mark.parametrize(
    "line",
    [
        "so <think>", "x</think>", "`<think>`", "<think/>",
        "[Analysis](a.md)", "[Analysis]: a.md", "[thought][1]", "think",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_thought(line: str) -> None:
    assert thought_on(line) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<|channel|>plan<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
        ("<|channel|>final<|message|>b\nc<|return|>\n", "b\nc\n"),
        ("<|start|>assistant<|channel|>plan<|message|>a\n<|channel|>final<|message|>\nb", "\n\nb"),
    ],
)  # fmt: skip
def test_only_the_final_channel_is_the_answer(text: str, left: str) -> None:
    doc = Document(text.split("\n"), {"a.py"}.__contains__)
    assert opens_channel(doc.lines[0])
    blank_channels(doc, 0)
    assert doc.lines == left.split("\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<|channel|>analysis<|message|>a\nb", "response.truncated"),
        ("<|channel|>analysis<|message|>a <|channel|>final<|message|>b", "response.truncated"),
        ("<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>",
         "response.unreadable_edit"),
    ],
)  # fmt: skip
def test_channels_that_give_no_answer(text: str, code: str) -> None:
    with pytest.raises(UnreadableEdit) as caught:
        blank_channels(Document(text.split("\n"), {"a.py"}.__contains__), 0)
    assert caught.value.problem.code == code
