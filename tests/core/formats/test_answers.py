"""Answers of the four APIs, as they come from the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

import patchq
from patchq.core.formats.envelope.streams import open_answer
from tests.helpers.reading import BLOCK, read, refused

ARGUMENTS = {"path": "src/a.py", "old_str": "old", "new_str": "new"}
A, B = f"src/a.py\n{BLOCK}", f"src/b.py\n{BLOCK}"
V4A = "*** Begin Patch\n*** Update File: src/a.py\n-old\n+new\n*** End Patch\n"


def messages(*content: Any, **members: Any) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
        "content": list(content), "stop_reason": "end_turn", "usage": {}, **members,
    }  # fmt: skip


def chat(message: Any, reason: str | None = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "model": "m-2", "choices": [choice]}


def responses(*output: Any, **members: Any) -> dict[str, Any]:
    return {
        "id": "r", "object": "response", "status": "completed", "model": "m-3",
        "output": list(output), **members,
    }  # fmt: skip


def generated(*parts: Any, reason: str | None = "STOP") -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    candidate = {"content": content, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "modelVersion": "m-4", "usageMetadata": {}}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(name: str = "Edit", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": arguments or ARGUMENTS}


def function(name: str = "Edit", arguments: str = json.dumps(ARGUMENTS)) -> dict[str, Any]:
    inner = {"name": name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": inner}


CALLED = {"type": "function_call", "name": "Edit", "arguments": json.dumps(ARGUMENTS)}
SAYS = {"type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "src/b.py\n"},
                    {"type": "output_text", "text": BLOCK}]}  # fmt: skip
READS = {
    "in order": (messages(text(B), use(), text(B)), "bab"),
    "thoughts": (messages({"type": "thinking", "thinking": B, "text": B}, text(A)), "a"),
    "server tools": (messages(use("web_search", query="x"), use()), "a"),
    "chat": (chat({"content": B, "tool_calls": [function(), function()]}), "baa"),
    "chat without content": (chat({"content": None, "tool_calls": [function()]}), "a"),
    "a call of nothing": (chat({"content": A, "tool_calls": [function("ls", "")]}), "a"),
    "a message alone": ({"role": "assistant", "tool_calls": [function()]}, "a"),
    "responses": (responses({"type": "reasoning", "summary": [text(B)]}, SAYS, CALLED), "ba"),
    "responses with a custom call": (
        responses({"type": "custom_tool_call", "name": "apply_patch", "input": V4A}), "a"),
    "generate": (generated({"text": "src/b.py\n"}, {"text": BLOCK},
                           {"functionCall": {"name": "Edit", "args": ARGUMENTS}}), "ba"),
    "its thoughts": (generated({"text": B, "thought": True}, {"text": A}), "a"),
    "without arguments": (generated({"functionCall": {"name": "ls"}}, {"text": A}), "a"),
    "a list": ([messages(text(A))], "a"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "names"), READS.values(), ids=READS)
def test_reads(value: Any, names: str) -> None:
    for indent in (None, 1):
        parsed = read(json.dumps(value, indent=indent))
        assert parsed.problems == ()
        assert [edit.path for edit in parsed.edits] == [f"src/{name}.py" for name in names]


CUTS = [
    (messages(text(A), stop_reason="refusal"), "refusal"),
    (messages(text(A), stop_reason={"type": "end_turn"}), "{'type': 'end_turn'}"),
    (chat({"content": A}, "length"), "length"),
    (generated({"text": A}, reason="MAX_TOKENS"), "MAX_TOKENS"),
    (responses(CALLED, status="incomplete"), "incomplete"),
    (responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
     "max_output_tokens"),
    (responses({**CALLED, "status": "incomplete"}), "incomplete"),
    ("\n".join(map(json.dumps, [messages(), messages(stop_reason="max_tokens"), messages()])),
     "max_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "cut"), CUTS)
def test_every_other_end_is_a_cut(value: Any, cut: str) -> None:
    parsed = read(value)
    assert parsed.edits == ()
    assert [problem.code for problem in parsed.problems] == ["response.truncated"]
    assert cut in parsed.problems[0].message


@pytest.mark.parametrize(
    "value",
    [
        "Hi.", "[]", json.dumps([use()]), f"{json.dumps(messages())}\nDone.",
        json.dumps(messages())[:-9], json.dumps({"role": "user", "content": "a"}),
        json.dumps({**chat({}), "choices": []}),
        json.dumps({"choices": [{"delta": {"content": "a"}}]}),
    ],
)  # fmt: skip
def test_anything_else_is_not_opened(value: str) -> None:
    assert open_answer(value) is None


def test_an_unreadable_text_part_names_the_json_line() -> None:
    answer = json.dumps(messages(text("*** Begin Patch\n")), indent=1)
    code, line = refused(answer)
    assert code == "truncated"
    assert 1 < (line or 0) < answer.count("\n")


SHELL = f"apply_patch <<'EOF'\n{V4A}EOF"


@pytest.mark.parametrize(
    "arguments",
    [
        {"input": V4A.replace("*** End Patch\n", "")},
        {"input": V4A, "path": "src/a.py"},
        {"input": V4A, "workdir": "src"},
        {"command": ["bash", "-lc", f"cd src && {SHELL}"]},
        {"command": f"{SHELL}\nrm src/b.py"},
        {"input": V4A, "patch": V4A},
    ],
)
def test_a_call_that_does_more_than_patch(arguments: Any) -> None:
    assert refused({"name": "apply_patch", "arguments": arguments}) == ("unreadable_edit", 1)
    part = {**use("apply_patch"), "input": arguments}
    assert refused(messages(part)) == ("unreadable_edit", 1)


def test_the_order_of_two_patches_places_no_hunk_of_either() -> None:
    update = "*** Begin Patch\n*** Update File: {}\n-{}\n+new\n*** End Patch"
    patches = [update.format("a.py", "old"), update.format("b.py", "middle")]
    calls = [{"name": "apply_patch", "arguments": {"input": patch}} for patch in patches]
    files = {"a.py": "old\nmiddle\nold\n", "b.py": "middle\n"}
    result = patchq.apply(json.dumps(calls), files)
    assert [problem.code for problem in result.problems] == ["match.ambiguous"]
