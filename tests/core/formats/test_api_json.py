"""Answers of the four APIs, as they come from the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core.formats.envelope.api_json import (
    ApiAnswer,
    ApiText,
    calls_of,
)
from patchq.core.formats.envelope.streams import open_answer
from patchq.core.text.jsonish import parse

ARGUMENTS = {"path": "a.py", "old_str": "x", "new_str": "y"}


def messages(*content: Any, **members: Any) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
        "content": list(content), "stop_reason": "end_turn", "usage": {}, **members,
    }  # fmt: skip


def completion(message: Any, reason: str | None = "stop") -> dict[str, Any]:
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


def tool_use(**arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": arguments}


def function(arguments: str) -> dict[str, Any]:
    return {
        "id": "call_1", "type": "function", "function": {"name": "Edit", "arguments": arguments},
    }  # fmt: skip


def opened(value: Any) -> ApiAnswer:
    found = open_answer(value if isinstance(value, str) else json.dumps(value))
    assert found is not None
    return found


def plain(value: Any) -> list[Any]:
    """The parts without their lines: texts, and pairs of name and arguments."""
    return [
        part.text if isinstance(part, ApiText) else (part.name, part.arguments.plain())
        for part in opened(value).parts
    ]


EDIT = ("Edit", ARGUMENTS)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        pytest.param(
            messages(text("a"), tool_use(**ARGUMENTS), text("b")), ["a", EDIT, "b"], id="in order"
        ),
        pytest.param(
            messages({"type": "thinking", "thinking": "hm", "text": "hm"}, text("a")),
            ["a"],
            id="thoughts are left out",
        ),
        pytest.param(messages(tool_use(edits=[1])), [("Edit", {"edits": [1]})], id="any arguments"),
        pytest.param(
            messages({"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}}),
            [("web_search", {"query": "x"})],
            id="server tools",
        ),
        pytest.param(
            completion({"content": None, "tool_calls": [function(json.dumps(ARGUMENTS))]}),
            [EDIT],
            id="chat with a call",
        ),
        pytest.param(
            completion({"tool_calls": [function("")]}), [("Edit", {})], id="empty arguments"
        ),
        pytest.param(
            completion({"tool_calls": [function('{"path": "a')]}),
            [("Edit", '{"path": "a')],
            id="broken arguments stay a text",
        ),
        pytest.param(
            responses(
                {"type": "reasoning", "summary": [text("hm")]},
                {"type": "message", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "a"},
                             {"type": "output_text", "text": "b"}]},
                {"type": "function_call", "name": "Edit", "arguments": json.dumps(ARGUMENTS)},
            ),
            ["ab", EDIT],
            id="responses",
        ),
        pytest.param(
            responses({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"}),
            [("apply_patch", "*** Begin")],
            id="responses with a custom call",
        ),
        pytest.param(
            responses({"type": "apply_patch_call",
                       "operation": {"type": "delete_file", "path": "a.py"}}),
            [("apply_patch_call", {"type": "delete_file", "path": "a.py"})],
            id="responses with a tool of its own",
        ),
        pytest.param(
            generated({"text": "a"}, {"text": "b"}, {"functionCall":
                      {"name": "Edit", "args": ARGUMENTS}}, {"text": "c"}),
            ["ab", EDIT, "c"],
            id="generateContent",
        ),
        pytest.param(
            generated({"text": "hm", "thought": True}, {"text": "a"}), ["a"], id="its thoughts"
        ),
        pytest.param(
            generated({"functionCall": {"name": "ls"}}), [("ls", {})], id="without arguments"
        ),
        pytest.param(
            json.dumps([messages(text("a"))], indent=2), ["a"], id="list"
        ),
    ],
)  # fmt: skip
def test_parts(value: Any, parts: list[Any]) -> None:
    assert plain(value) == parts


@pytest.mark.parametrize(
    "reason",
    ["end_turn", "stop", "stop_sequence", "tool_use", "tool_calls", "function_call", "STOP",
     "completed", None],
)  # fmt: skip
def test_normal_ends_are_no_cut(reason: str | None) -> None:
    assert opened(messages(stop_reason=reason)).cut is None
    assert opened(completion({"content": "a"}, reason)).cut is None
    assert opened(generated(reason=reason)).cut is None
    assert opened(responses(status=reason)).cut is None


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        (messages(stop_reason="refusal"), "refusal"),
        (messages(stop_reason="pause_turn"), "pause_turn"),
        (messages(stop_reason={"type": "end_turn"}), "{'type': 'end_turn'}"),
        (completion({"content": "a"}, "length"), "length"),
        (completion({"content": "a"}, "content_filter"), "content_filter"),
        (generated(reason="MAX_TOKENS"), "MAX_TOKENS"),
        (generated(reason="SAFETY"), "SAFETY"),
        (responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
         "max_output_tokens"),
        (responses({"type": "function_call", "name": "Edit", "arguments": "", "status":
                    "incomplete"}), "incomplete"),
        ("\n".join(map(json.dumps, [messages(), messages(stop_reason="max_tokens"), messages()])),
         "max_tokens"),
    ],
)  # fmt: skip
def test_every_other_end_is_a_cut(value: Any, cut: str) -> None:
    assert opened(value).cut == cut


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param("Hi.", id="prose"),
        pytest.param("{}", id="an empty object"),
        pytest.param("[]", id="an empty list"),
        pytest.param(json.dumps([tool_use(**ARGUMENTS)]), id="calls without a message"),
        pytest.param(f"{json.dumps(messages())}\nDone.", id="prose behind"),
        pytest.param(json.dumps(messages())[:-9], id="cut"),
        pytest.param(json.dumps({"role": "user", "content": "a"}), id="what the user says"),
        pytest.param(json.dumps({**completion({}), "choices": []}), id="no choice"),
        pytest.param(json.dumps({"choices": [{"delta": {"content": "a"}}]}), id="a chunk"),
        pytest.param(json.dumps({"type": "error", "error": {"message": "busy"}}), id="an error"),
        pytest.param("3", id="a number"),
    ],
)
def test_anything_else_is_not_opened(value: str) -> None:
    assert open_answer(value) is None


def test_calls_of_a_message() -> None:
    value = {"role": "assistant", "tool_calls": [function(json.dumps(ARGUMENTS))] * 2}
    calls = calls_of(parse(json.dumps(value)))
    assert calls is not None
    assert [call.name for call in calls] == ["Edit", "Edit"]
    assert calls_of(parse('{"tool_calls": [1]}')) is None
    assert calls_of(parse('{"tool_calls": []}')) is None
