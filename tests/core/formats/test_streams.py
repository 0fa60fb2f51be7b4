"""What agents print: streams of events and the objects of hooks, after their documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core import formats
from patchq.core.formats.marks.paths import BasePaths
from patchq.core.model.values import Parsed

FILES = {"src/a.py", "src/b.py"}
ROOT = "/repo"
EDIT = {"file_path": "/repo/src/a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
OTHER = {**EDIT, "file_path": "src/b.py"}
EDITED = {"old_string": "x = 1\n", "new_string": "x = 2\n"}
PATCH = "*** Begin Patch\n*** Update File: src/b.py\n@@\n-x\n+y\n*** End Patch\n"
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


AGENT = said(use("agent", "Agent", description="Fix it", prompt="Fix src/a.py",
                 subagent_type="general-purpose"))  # fmt: skip
MADE = (said(use("t1")), result("t1"))
DENIED = {**END, "permission_denials": [{"tool_name": "Edit", "tool_use_id": "t1"}]}


EXPLORE = said(use("look", "Task", subagent_type="Explore", prompt=BLOCK))
FAILED = "<tool_use_error>File has not been read</tool_use_error>"
NOTEBOOK = use("n", "NotebookEdit", notebook_path="/repo/n.ipynb", new_source="x",
               edit_mode="replace")  # fmt: skip
SECOND = (said(use("t2", **OTHER)), result("t2"))
AGAIN = (said(use("t2")), result("t2"))


def turn(*events: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (INIT, *events, END)


def user(content: Any, **members: Any) -> dict[str, Any]:
    return {"type": "user", "session_id": "s", **members,
            "message": {"role": "user", "content": content}}  # fmt: skip


DONE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "with words": ("a", turn(said(text("So.")), *MADE, said(text("Done.")))),
    "told twice": ("a", turn(said(use("t1")), said(use("t1")), result("t1"))),
    "denied, as the end tells": ("b", (INIT, *MADE, *SECOND, DENIED)),
    "a look without result": ("a", turn(said(use("t1", "Read", file_path="src/a.py")), *AGAIN)),
    "thinking": ("a", turn(said({"type": "thinking", "thinking": BLOCK}), *MADE)),
    "other events": ("a", turn({"type": "stream_event", "event": {"delta": {"partial_json": "{"}}},
                               {"type": "rate_limit_event", "rate_limit_info": {}}, *MADE)),
    "edits in words": ("a", turn(said(text(BLOCK)))),
    "the end alone": ("a", ({**END, "result": BLOCK},)),
    "a further turn": ("a", (INIT, *MADE, {**END, "subtype": "error_max_turns"},
                             *turn(said(text("Go on."))))),
    "below its directory": ("abb", (
        {**INIT, "cwd": "/repo/src"}, said(use("t1", **{**EDIT, "file_path": "a.py"})),
        result("t1"), said(use("t2", "MultiEdit", file_path="./b.py", edits=[EDITED])),
        result("t2"), said(use("t3", "apply_patch", input=PATCH.replace("src/", ""))),
        result("t3"), END)),
    "another agent": ("a", turn(AGENT, *inner(user([text("Fix")]), *MADE),
                                result("agent", says=[text("Done.")]))),
    "another agent's words": ("a", turn(AGENT, *inner(said(text(BLOCK)), *MADE), result("agent"))),
    "an agent that looks": ("a", turn(EXPLORE, result("look"), *MADE)),
    "failed, in words": ("a", turn(said(use("t1")), result("t1", says=FAILED), SECOND[0],
                                   result("t2", says=[text(FAILED)]), said(use("t3")),
                                   result("t3"))),
    "compacted": ("ab", turn(*MADE, system("status", status="compacting"),
                             system("compact_boundary", compact_metadata={"trigger": "auto"}),
                             user(f"So far: {BLOCK}", isSynthetic=True), *SECOND)),
    "a prompt told again": ("a", turn(user([text(BLOCK)], isReplay=True), *MADE)),
    "resumed": ("ab", (*turn(*MADE), *turn(*SECOND))),
    "asked for leave": ("a", turn({"type": "control_request", "request_id": "1", "request": {
        "subtype": "can_use_tool", "tool_name": "Edit", "input": OTHER}}, *MADE)),
    "before and after": ("a", (hook(), hook(kind="PostToolUse"))),
    "hook of a patch": ("b", (hook("apply_patch", command=PATCH),)),
    "hook of a new file": ("c", (hook("Write", file_path="/repo/src/c.py", content="x\n"),)),
}  # fmt: skip


@pytest.mark.parametrize(("names", "events"), DONE.values(), ids=DONE)
def test_what_was_done(names: str, events: tuple[Any, ...]) -> None:
    parsed = read(*events)
    assert parsed.problems == ()
    assert [edit.path for edit in parsed.edits] == [f"src/{name}.py" for name in names]


@pytest.mark.parametrize(
    ("events", "code", "words"),
    [
        ((INIT, *MADE, {**END, "subtype": "error_max_turns"}), "truncated", "error_max_turns"),
        ((INIT, *MADE, {**END, "is_error": True}), "truncated", "an error"),
        ((INIT, *MADE), "truncated", "without its event `result`"),
        (turn(said(use("t1"), stop_reason="max_tokens"), MADE[1]), "truncated", "max_tokens"),
        (turn(MADE[0]), "unreadable_edit", "does not tell whether"),
        (turn(MADE[0], said(use("t1", **OTHER)), MADE[1]), "unreadable_edit", "two different"),
        (turn(*MADE, {"type": "news", "call": use("t2")}), "unreadable_edit", "'news'"),
        (({**INIT, "cwd": "/repo/sub"}, said(text(BLOCK)), END), "unreadable_edit", "'/repo/sub'"),
        (({"type": "tool_use", "sessionID": "s", "part": {"tool": "edit", "state":
          {"input": EDIT}}},), "unreadable_edit", "'tool_use'"),
        ((hook(kind="Stop"),), "unreadable_edit", "'Stop'"),
        (turn(MADE[0], {**result("t1"), "tool_use_result": {"userModified": True}}),
         "unreadable_edit", "a person changed an edit"),
        (turn(said(NOTEBOOK), result("n"), *MADE), "unreadable_edit", "may change a file"),
        (({"type": "item.completed", "item": {"type": "file_change", "changes": []}},),
         "unreadable_edit", "codex exec --json"),
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
