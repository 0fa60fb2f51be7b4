"""Streams and objects of agents' own tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bench.corpus.rewrites.forms import PathStyle, calls
from bench.corpus.rewrites.registry import Brief, Rewrite, either, exact, kind, refuse
from bench.corpus.rewrites.tasks import applied


def _absolute_calls(brief: Brief) -> list[tuple[str, dict[str, str]]]:
    return calls(brief.changes, PathStyle(spell=lambda path: f"{brief.root}/{path}"))


def _use(key: str, name: str, words: object) -> dict[str, object]:
    use = {"type": "tool_use", "id": key, "name": name, "input": words}
    message = {"role": "assistant", "type": "message", "content": [use]}
    return {"type": "assistant", "message": message}


def _done(key: str, text: str = "done", failed: bool = False) -> dict[str, object]:
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": key, "content": text}
    if failed:
        result = {**result, "is_error": True}
    return {"type": "user", "message": {"role": "user", "content": [result]}}


def _lines(events: Sequence[object], cwd: str, **end: object) -> str:
    """A whole stream round the events of a session."""
    first = {"type": "system", "subtype": "init", "cwd": cwd, "session_id": "s"}
    last = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", **end}
    return "".join(json.dumps(event) + "\n" for event in (first, *events, last))


def _events(calls_: Sequence[tuple[str, dict[str, str]]]) -> list[object]:
    found: list[object] = []
    for number, (name, words) in enumerate(calls_):
        found += [_use(f"toolu_{number:02}", name, words), _done(f"toolu_{number:02}")]
    return found


LOOKS = (
    ("Read", {"file_path": "/any/file.py"}), ("Grep", {"pattern": "x"}), ("Glob", {"pattern": "*"}),
    ("Bash", {"command": "pytest -q", "description": "Run the tests"}),
    ("TodoWrite", {"todos": [{"content": "edit", "status": "pending", "activeForm": "editing"}]}),
    ("Bash", {"command": "git status && git diff"}),
)  # fmt: skip
"""What an agent does beside its edits."""


@kind("stream: calls that look and run", "streams")
def _looking(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    events = _events(_absolute_calls(brief))
    for number, (name, words) in enumerate(brief.dice.sample(LOOKS, 3)):
        key = f"toolu_look_{number}"
        at = brief.dice.randrange(len(events) // 2 + 1) * 2
        events[at:at] = [_use(key, name, words), _done(key, "some output")]
    return exact(_lines(events, brief.root))


@kind("stream: a command that removes a file", "streams")
def _removing(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    path = brief.dice.choice(list(brief.task.before))
    command = brief.dice.choice([f"rm {path}", f"git mv {path} other.txt", f"sed -i s/a/b/ {path}"])
    events = _events(_absolute_calls(brief))
    events += [_use("toolu_rm", "Bash", {"command": command}), _done("toolu_rm", "")]
    response = _lines(events, brief.root)
    return refuse(response, losses=[brief.task.result()], extra=1)


@kind("stream: a call told twice", "streams")
def _told_twice(brief: Brief) -> Rewrite | None:
    """An event may come again as it grows; the id tells."""
    if brief.form.name != "messages":
        return None
    events = _events(_absolute_calls(brief))
    return exact(_lines([events[0], *events], brief.root))


@kind("stream: a failed call that is made again", "streams")
def _again(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if brief.form.name != "messages" or not able:
        return None
    wrong = {"file_path": f"{brief.root}/{able[0].path}", "old_string": "no such text anywhere",
             "new_string": able[0].new or ""}  # fmt: skip
    failed = _done("toolu_bad", "String to replace not found in file.", failed=True)
    events = [_use("toolu_bad", "Edit", wrong), failed, *_events(_absolute_calls(brief))]
    return exact(_lines(events, brief.root))


@kind("stream: relative paths", "streams")
def _relative(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    return exact(_lines(_events(calls(brief.changes, PathStyle())), brief.root))


@kind("stream: relative paths below a folder", "streams")
def _below(brief: Brief) -> Rewrite | None:
    folders = {c.path.rpartition("/")[0] for c in brief.changes}
    if brief.form.name != "messages" or len(folders) != 1 or not (folder := folders.pop()):
        return None
    style = PathStyle(spell=lambda path: path.removeprefix(f"{folder}/"))
    return exact(_lines(_events(calls(brief.changes, style)), f"{brief.root}/{folder}"))


@kind("stream: a limit at its end", "streams")
def _limit(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    events = _events(_absolute_calls(brief))
    return refuse(_lines(events, brief.root, is_error=True, result="Usage limit reached"))


@kind("stream: words between the calls", "streams")
def _words(brief: Brief) -> Rewrite | None:
    if brief.form.name != "messages":
        return None
    content = [{"type": "thinking", "thinking": "I look.", "signature": "x"},
               {"type": "text", "text": "I change it now."}]  # fmt: skip
    words = {"type": "assistant", "message": {"role": "assistant", "content": content}}
    return exact(_lines([words, *_events(_absolute_calls(brief))], brief.root))


def _stream(brief: Brief, fail: int | None = None, end: str = "success") -> str:
    events: list[object] = []
    for number, (name, words) in enumerate(_absolute_calls(brief)):
        key, failed = f"toolu_{number:02}", number == fail
        events += [_use(key, name, words), _done(key, "denied" if failed else "done", failed)]
    return _lines(events, brief.root, subtype=end, is_error=end != "success")


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
