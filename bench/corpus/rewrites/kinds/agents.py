"""Streams and objects of agents' own tools."""

from __future__ import annotations

import json

from bench.corpus.rewrites.forms import PathStyle, calls
from bench.corpus.rewrites.registry import Brief, Rewrite, either, exact, kind, refuse
from bench.corpus.rewrites.tasks import applied


def _absolute_calls(brief: Brief) -> list[tuple[str, dict[str, str]]]:
    return calls(brief.changes, PathStyle(spell=lambda path: f"{brief.root}/{path}"))


def _stream(brief: Brief, fail: int | None = None, end: str = "success") -> str:
    events: list[object] = [
        {
            "type": "system",
            "subtype": "init",
            "cwd": brief.root,
            "session_id": "s",
            "tools": ["Edit", "Write"],
        }
    ]
    for number, (name, words) in enumerate(_absolute_calls(brief)):
        key = f"toolu_{number:02}"
        use = {"type": "tool_use", "id": key, "name": name, "input": words}
        events.append(
            {
                "type": "assistant",
                "message": {"role": "assistant", "type": "message", "content": [use]},
            }
        )
        result: dict[str, object] = {"type": "tool_result", "tool_use_id": key, "content": "done"}
        if number == fail:
            result |= {"is_error": True, "content": "denied"}
        events.append({"type": "user", "message": {"role": "user", "content": [result]}})
    events.append(
        {"type": "result", "subtype": end, "is_error": end != "success", "result": "Done."}
    )
    return "".join(json.dumps(event) + "\n" for event in events)


@kind("stream of Claude Code", "streams")
def _claude_stream(brief: Brief) -> Rewrite | None:
    return exact(_stream(brief)) if brief.form.name == "messages" else None


@kind("stream with a denied call", "streams")
def _denied(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages" or len(brief.changes) < 2:
        return None
    n = brief.dice.randrange(len(brief.changes))
    rest = [c for i, c in enumerate(brief.changes) if i != n]
    return exact(_stream(brief, fail=n), applied(brief.task.before, rest))


@kind("stream that ends in an error", "streams")
def _ended(brief: Brief) -> Rewrite | None:
    end = brief.dice.choice(["error_max_turns", "error_during_execution"])
    return refuse(_stream(brief, end=end)) if brief.form.name == "messages" else None


@kind("a hook's object", "streams")
def _hook_object(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages" or len(brief.changes) != 1:
        return None
    name, words = _absolute_calls(brief)[0]
    value = {
        "session_id": "s",
        "transcript_path": "/x.jsonl",
        "cwd": brief.root,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": words,
    }
    return exact(json.dumps(value))


@kind("codex exec --json", "streams")
def _codex(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    events: list[object] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
    ]
    for number, change in enumerate(brief.changes):
        changes = [{"path": change.path, "kind": "update"}]
        item = {"id": f"i{number}", "type": "file_change", "status": "completed"}
        events.append({"type": "item.completed", "item": {**item, "changes": changes}})
    events.append({"type": "turn.completed", "usage": {}})
    return refuse("".join(json.dumps(event) + "\n" for event in events))


@kind("a delete_file call", "streams")
def _delete_call(brief: Brief) -> Rewrite | None:
    if brief.form.name != "chat" or len(brief.task.before) < 2:
        return None
    path = brief.dice.choice(list(brief.task.before))
    function = {"name": "delete_file", "arguments": json.dumps({"path": path})}
    call = {"id": "c", "type": "function", "function": function}
    message: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    after = {p: x for p, x in brief.task.before.items() if p != path}
    # A tool that nobody has listed: read as what it says, or refused; never left out.
    return either(json.dumps({"object": "chat.completion", "choices": [choice]}), after)
