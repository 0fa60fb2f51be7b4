"""What a model thinks aloud is no edit, and moves no line."""

from __future__ import annotations

import pytest

from tests.helpers.reading import BLOCK, read, refused

A, B = f"src/a.py\n{BLOCK}", f"src/b.py\n{BLOCK}"
WORDS = ("think", "Thinking", "THOUGHT", "reasoning", "reflection", "scratchpad", "analysis")
SHAPES = ("<{}>", "<{} id='1'>", "<seed:{}>", "<my-{}>", "<a:b-{}>", "[{}]", "◁{}▷", "<|{}|>")


def check_only_a(text: str) -> None:
    """The text has the one edit of `src/a.py`, in the lines that it really has."""
    parsed = read(text)
    last = text[: text.rindex("REPLACE")].count("\n") + 1
    assert [(edit.path, edit.at[1]) for edit in parsed.edits] == [("src/a.py", last)], text


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_thinking_is_known_in_every_spelling(word: str, shape: str) -> None:
    opening = shape.format(word)
    at = 2 if opening.startswith("<|") else 1
    closing = f"{opening[:at]}/{opening[at:]}".replace(" id='1'", "")
    for text in (f"{opening}\n{B}{closing}\n{A}", f"  {opening} so\n{B}{closing}{A}"):
        check_only_a(text)


@pytest.mark.parametrize(
    "thought",
    [
        f"<think>a</think>\n<think>\n{B}</think>",
        f"<think>\n<think>\n{B}</think>\n{B}</think>",
        f"<think>\na <think> b\n{B}</think>",
        f"<think>\nno `</think>` yet\n{B}</think>",
        f"[THINK]\n</think>\n{B}[/think]",
        f"<|channel|>plan<|message|>{B}<|end|><|start|>assistant<|channel|>final<|message|>",
        f"<|start|>assistant<|channel|>plan<|message|>{B}\n<|channel|>final<|message|>",
    ],
)
def test_a_thought_ends_where_it_ends(thought: str) -> None:
    check_only_a(f"{thought}\n{A}<|return|>\n" if "channel" in thought else f"{thought}\n{A}")


@pytest.mark.parametrize(
    "line",
    [
        "so <think>", "x</think>", "`<think>`", "<think/>",
        "[Analysis](a.md)", "[Analysis]: a.md", "[thought][1]", "think",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_thought(line: str) -> None:
    parsed = read(f"{line}\n\n{A}")
    assert [edit.path for edit in parsed.edits] == ["src/a.py"]
    assert parsed.prose == line


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"<think>\n<think>\n</think>\n{A}", "truncated"),
        (f"<|channel|>analysis<|message|>a\n{A}", "truncated"),
        (f"<|channel|>analysis<|message|>a <|channel|>final<|message|>{A}", "truncated"),
        ("<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>",
         "unreadable_edit"),
    ],
)  # fmt: skip
def test_thoughts_without_an_answer(text: str, code: str) -> None:
    assert refused(text)[0] == code
