"""What leaves the machine, and what an answer is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.llm.corrections import OLD, read
from patchq.llm.prompts import quoted


@given(st.lists(st.sampled_from(["`", "```", "```json", "~~~", "\n", "text", " "])).map("".join))
def test_nothing_in_a_text_ends_its_quotation(text: str) -> None:
    fence, *lines, end = quoted(text).split("\n")
    assert fence == end
    assert set(fence) == {"`"}
    assert not any(fence in line for line in lines)
    assert "\n".join([*lines, ""]).removesuffix("\n") == text.removesuffix("\n")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (json.dumps({OLD: "a\n"}), "a\n"),
        (f" \n{json.dumps({OLD: 'a'})}\n", "a"),
        (f"```json\n{json.dumps({OLD: 'a'})}\n```", "a"),
        (f"````\n{json.dumps({OLD: '```'})}\n````", "```"),
        (json.dumps({OLD: ""}), ""),
        (f"Sure!\n{json.dumps({OLD: 'a'})}", None),
        (json.dumps({OLD: "a", "b": "c"}), None),
        (json.dumps({"b": "c"}), None),
        (json.dumps({OLD: None}), None),
        (json.dumps([OLD]), None),
        (json.dumps({OLD: "\udc80"}), None),
        (json.dumps({OLD: "a\0"}), None),
        ("[" * 100_000, None),
        ("", None),
    ],
    ids=range(14),
)
def test_answer_is_one_object_with_one_text(answer: str, text: str | None) -> None:
    assert read(answer, OLD) == text
