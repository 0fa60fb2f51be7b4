"""What agents print: streams of events and the objects of hooks, after their documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core import formats
from patchq.core.formats.marks.paths import BasePaths
from patchq.core.model.ops import DeleteFile
from patchq.core.model.values import Parsed

FILES = {"src/a.py", "src/b.py"}
ROOT = "/repo"
EDIT = {"file_path": "/repo/src/a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
OTHER = {**EDIT, "file_path": "src/b.py"}
INIT = {
    "type": "system", "subtype": "init", "cwd": ROOT, "session_id": "s", "model": "m",
    "tools": ["Bash", "Edit"], "permissionMode": "default", "uuid": "u0",
}  # fmt: skip
END = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 2, "num_turns": 3,
    "result": "Done.", "session_id": "s", "usage": {}, "permission_denials": [], "uuid": "u9",
}  # fmt: skip
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


def below(path: str) -> str | None:
    return path.removeprefix(f"{ROOT}/") if path.startswith(f"{ROOT}/") else None


def read(*events: Any, front: str = "") -> Parsed:
    text = front + "".join(json.dumps(event) + "\n" for event in events)
    return formats.parse(text, BasePaths(FILES.__contains__, below=below))


def said(*content: Any, id: str = "msg_1", **members: Any) -> dict[str, Any]:
    message = {
        "id": id, "type": "message", "role": "assistant", "model": "m", "content": list(content),
        "stop_reason": None, "usage": {}, **members,
    }  # fmt: skip
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "s"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str, name: str = "Edit", **words: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": words or EDIT}


def result(id: str, *, error: bool = False, says: Any = "done") -> dict[str, Any]:
    item = {"type": "tool_result", "tool_use_id": id, "content": says}
    if error:
        item["is_error"] = True
    return {"type": "user", "message": {"role": "user", "content": [item]}, "session_id": "s"}


def hook(name: str = "Edit", kind: str = "PreToolUse", **words: Any) -> dict[str, Any]:
    return {
        "session_id": "s", "transcript_path": "/t.jsonl", "cwd": ROOT, "permission_mode": "default",
        "hook_event_name": kind, "tool_name": name, "tool_input": words or EDIT,
        "tool_use_id": "t1",
    }  # fmt: skip


def inner(*events: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What another agent does, for the call `agent`."""
    return tuple({**event, "parent_tool_use_id": "agent"} for event in events)


def system(subtype: str, **members: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "session_id": "s", "uuid": "u", **members}


def done(**members: Any) -> dict[str, Any]:
    """A result with what the tool itself says of it."""
    told = {"filePath": "/repo/src/a.py", "originalFile": "x = 1\n", "userModified": False}
    return {**result("t1"), "tool_use_result": {**told, **members}}


AGENT = said(use("agent", "Agent", description="Fix it", prompt="Fix src/a.py",
                 subagent_type="general-purpose"))  # fmt: skip
MADE = (said(use("t1")), result("t1"))
DENIED = {**END, "permission_denials": [{"tool_name": "Edit", "tool_use_id": "t1"}]}


@pytest.mark.parametrize(
    ("events", "paths"),
    [
        pytest.param((INIT, said(text("So.")), *MADE, said(text("Done.")), END), ["src/a.py"],
                     id="with words"),
        pytest.param((INIT, said(use("t1")), said(use("t1")), result("t1"), END), ["src/a.py"],
                     id="told twice"),
        pytest.param((INIT, said(use("t1")), result("t1"), said(use("t2", **OTHER)), result("t2"),
                      DENIED), ["src/b.py"], id="denied, as the end tells"),
        pytest.param((INIT, said(use("t1", "Read", file_path="src/a.py")), said(use("t2")),
                      result("t2"), END), ["src/a.py"], id="a look without result"),
        pytest.param((INIT, said(use("t1", "Bash", command="ls")), result("t1", error=True), *
                      (said(use("t2")), result("t2")), END), ["src/a.py"], id="a command failed"),
        pytest.param((INIT, said({"type": "thinking", "thinking": BLOCK}), *MADE, END),
                     ["src/a.py"], id="thinking"),
        pytest.param((INIT, {"type": "stream_event", "event": {"delta": {"partial_json": "{"}}},
                      {"type": "rate_limit_event", "rate_limit_info": {}}, *MADE, END),
                     ["src/a.py"], id="other events"),
        pytest.param((INIT, said(text(BLOCK)), END), ["src/a.py"], id="edits in words"),
        pytest.param(({**END, "result": BLOCK},), ["src/a.py"], id="the end alone"),
        pytest.param((INIT, *MADE, {**END, "subtype": "error_max_turns"}, INIT,
                      said(text("Go on.")), END), ["src/a.py"], id="a further turn"),
        pytest.param(({"type": "rate_limit_event"}, INIT, *MADE, END), ["src/a.py"], id="late"),
        pytest.param((INIT, AGENT, *inner({"type": "user", "message": {"content": [text("Fix")]}},
                      *MADE), result("agent", says=[text("Done.")]), END), ["src/a.py"],
                     id="another agent"),
        pytest.param((INIT, AGENT, *inner(said(text(BLOCK)), *MADE), result("agent"), END),
                     ["src/a.py"], id="another agent's words"),
        pytest.param((INIT, said(use("look", "Task", subagent_type="Explore", prompt=BLOCK)),
                      result("look"), *MADE, END), ["src/a.py"], id="an agent that looks"),
        pytest.param((INIT, said(use("t1")),
                      result("t1", says="<tool_use_error>File has not been read</tool_use_error>"),
                      said(use("t2", **OTHER)),
                      result("t2", says=[text("<tool_use_error>no</tool_use_error>")]),
                      said(use("t3")), result("t3"), END), ["src/a.py"], id="failed, in words"),
        pytest.param((INIT, said(use("t1", "NotebookEdit", notebook_path="/repo/n.ipynb",
                      new_source="x", edit_mode="replace")), result("t1", error=True),
                      said(use("t2")), result("t2"), END), ["src/a.py"], id="a notebook, failed"),
        pytest.param((INIT, *MADE, system("status", status="compacting"),
                      system("compact_boundary", compact_metadata={"trigger": "auto"}),
                      {"type": "user", "isSynthetic": True, "session_id": "s",
                       "message": {"role": "user", "content": f"So far: {BLOCK}"}},
                      said(use("t2", **OTHER)), result("t2"), END), ["src/a.py", "src/b.py"],
                     id="compacted"),
        pytest.param((INIT, {"type": "user", "isReplay": True, "session_id": "s",
                      "message": {"role": "user", "content": [text(BLOCK)]}}, *MADE, END),
                     ["src/a.py"], id="a prompt told again"),
        pytest.param((INIT, *MADE, END, {**INIT, "uuid": "v"}, said(use("t2", **OTHER)),
                      result("t2"), END), ["src/a.py", "src/b.py"], id="resumed"),
        pytest.param((INIT, {"type": "stream_event", "parent_tool_use_id": None, "session_id": "s",
                      "event": {"type": "content_block_start", "index": 0,
                                "content_block": use("t1")}}, *MADE, END), ["src/a.py"],
                     id="partial messages"),
        pytest.param((INIT, said(use("t1")), {"type": "tool_progress", "tool_use_id": "t1",
                      "tool_name": "Edit", "parent_tool_use_id": None, "session_id": "s",
                      "elapsed_time_seconds": 30}, result("t1"), END), ["src/a.py"], id="progress"),
        pytest.param((INIT, {"type": "control_request", "request_id": "1", "request":
                      {"subtype": "can_use_tool", "tool_name": "Edit", "input": OTHER}},
                      *MADE, END), ["src/a.py"], id="asked for leave"),
        pytest.param((INIT, said(use("p", "ExitPlanMode", plan=f"# Plan\n\n{BLOCK}")), result("p"),
                      said(use("m", "SendMessage", recipient="lead", content="done")), result("m"),
                      *MADE, END), ["src/a.py"], id="tools that talk"),
        pytest.param((INIT, said(use("t1", file_path="src/a.py", old_string="x = \u2018a\u2019",
                      new_string="x = 2  \ny")), done(oldString="x = 'a'", newString="x = 2\ny"),
                      END), ["src/a.py"], id="done as the tool tidies it"),
        pytest.param((INIT, said(use("t1")), {**result("t1", error=True),
                      "tool_use_result": "Error: x"}, said(use("t2")), result("t2"), END),
                     ["src/a.py"], id="an error, told as text"),
        pytest.param((hook(), hook(kind="PostToolUse")), ["src/a.py"], id="before and after"),
        pytest.param((hook("apply_patch", command=
                      "*** Begin Patch\n*** Update File: src/b.py\n@@\n-x\n+y\n*** End Patch\n"),),
                     ["src/b.py"], id="hook of a patch"),
        pytest.param((hook("Write", file_path="/repo/src/c.py", content="x\n"),), ["src/c.py"],
                     id="hook of a new file"),
    ],
)  # fmt: skip
def test_what_was_done(events: tuple[Any, ...], paths: list[str]) -> None:
    parsed = read(*events)
    assert parsed.problems == ()
    assert [edit.path for edit in parsed.edits] == paths


@pytest.mark.parametrize(
    ("events", "code", "words"),
    [
        ((INIT, *MADE, {**END, "subtype": "error_max_turns"}), "truncated", "error_max_turns"),
        ((INIT, *MADE, {**END, "is_error": True}), "truncated", "an error"),
        ((INIT, *MADE), "truncated", "without its event `result`"),
        ((INIT, said(use("t1"), stop_reason="max_tokens"), result("t1"), END), "truncated",
         "max_tokens"),
        ((INIT, said(use("t1")), END), "unreadable_edit", "does not tell whether"),
        ((INIT, said(use("t1")), said(use("t1", **OTHER)), result("t1"), END), "unreadable_edit",
         "two different calls"),
        ((INIT, *MADE, {"type": "news", "call": use("t2")}, END), "unreadable_edit", "'news'"),
        (({**INIT, "cwd": "/repo/sub"}, said(text(BLOCK)), END), "unreadable_edit", "'/repo/sub'"),
        (({"type": "tool_use", "sessionID": "s", "part": {"tool": "edit", "state":
          {"input": EDIT}}},), "unreadable_edit", "'tool_use'"),
        ((INIT, {"type": "tool_call", "tool_call": {"editToolCall": {"args": EDIT}}}, END),
         "unreadable_edit", "'tool_call'"),
        ((hook(kind="Stop"),), "unreadable_edit", "'Stop'"),
        ((INIT, said(use("t1")), {**result("t1"), "tool_use_result": {"filePath": "/repo/src/a.py",
          "userModified": True}}, END), "unreadable_edit", "a person changed an edit"),
        ((INIT, said(use("n", "NotebookEdit", notebook_path="/repo/n.ipynb", new_source="x",
          edit_mode="replace")), result("n"), *MADE, END), "unreadable_edit", "may change a file"),
        (({"type": "thread.started", "thread_id": "t"}, {"type": "turn.completed"}),
         "unreadable_edit", "codex exec --json"),
        (({"type": "item.completed", "item": {"type": "file_change", "changes": []}},),
         "unreadable_edit", "codex exec --json"),
        (({"choices": [{"message": {"content": BLOCK}}] * 2},), "unreadable_edit", "2 answers"),
        (({"candidates": [{"content": {"parts": [text(BLOCK)]}}] * 3},), "unreadable_edit",
         "3 answers"),
        (([said(text(BLOCK))["message"]] * 2,), "unreadable_edit", "2 answers (a list of messages"),
        (([{"role": "user", "content": "Do it."}, {"role": "assistant", "content": BLOCK}],),
         "unreadable_edit", "2 answers"),
        (({"messages": [{"role": "user", "content": "."}, {"role": "assistant", "content": "."}]},),
         "unreadable_edit", "2 answers (`messages`)"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_what_refuses(events: tuple[Any, ...], code: str, words: str) -> None:
    parsed = read(*events)
    assert [problem.code for problem in parsed.problems] == [f"response.{code}"]
    assert words in parsed.problems[0].message
    assert parsed.problems[0].hint
    assert parsed.edits == ()


def test_a_stream_that_is_cut_within_an_event() -> None:
    lines = "".join(json.dumps(event) + "\n" for event in (INIT, *MADE, END))
    for end in (len(lines) - 3, len(lines) // 2):
        (problem,) = formats.parse(lines[:end], FILES.__contains__).problems
        assert problem.code == "response.truncated"
    broken = lines.replace('"subtype": "success"', '"subtype": oops')
    (problem,) = formats.parse(broken, FILES.__contains__).problems
    assert (problem.code, problem.line) == ("response.unreadable_edit", 4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("delete_file", {"target_file": "src/a.py", "explanation": "It is not used."}),
        ("deleteFile", {"filePath": "src/a.py"}),
        ("remove_file", {"file_path": "src/a.py"}),
        ("fs__delete_file", {"path": "./src/a.py"}),
    ],
)
def test_a_call_that_deletes_a_file(name: str, words: dict[str, str]) -> None:
    for value in (
        {"name": name, "arguments": words},
        said(use("t1", name, **words))["message"],
        hook(name, **words),
    ):
        (edit,) = read(value).edits
        assert (edit.path, edit.op) == ("src/a.py", DeleteFile())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("delete_lines", {"path": "src/a.py", "start": 1, "end": 2}),
        ("delete_file", {"path": "src/a.py", "line": 3}),
        ("delete_directory", {"path": "src"}),
        ("delete_file", {"path": "src/a.py", "content": "x"}),
    ],
)
def test_a_call_that_deletes_something_else(name: str, words: dict[str, Any]) -> None:
    parsed = read({"name": name, "arguments": words})
    assert [problem.code for problem in parsed.problems] == ["response.unreadable_edit"]
