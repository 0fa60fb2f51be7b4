"""What edit calls say, with and without the name of their tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core.formats.envelope.api_json import ToolCall
from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.json.grammar import read_call
from patchq.core.model.ops import Create, InsertAt, Op, ReplaceText, Write
from patchq.core.text import jsonish
from tests.helpers.reading import refused, said

UNREADABLE = "unreadable_edit"
ONCE = ReplaceText("x\n", "y\n")


def call(**members: Any) -> dict[str, Any]:
    return {"path": "a.py", "old_str": "x\n", "new_str": "y\n", **members}


def named(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "input": arguments}


def case(name: str, value: Any, *ops: Op) -> Any:
    return pytest.param(value, list(ops), id=name)


@pytest.mark.parametrize(
    ("value", "ops"),
    [
        case("camel", {"filePath": "a.py", "oldString": "x\n", "newString": "y\n"}, ONCE),
        case("text", {"file": "a.py", "oldText": "x\n", "newText": "y\n"}, ONCE),
        case("list", [call(), call(new_str="z")], ONCE, ReplaceText("x\n", "z")),
        case("expected", call(expected_replacements=3), ReplaceText("x\n", "y\n", 3, stated=True)),
        case("expected as a float", call(expectedReplacements=2.0),
            ReplaceText("x\n", "y\n", 2, stated=True)),
        case("all", call(replace_all=True), ReplaceText("x\n", "y\n", None)),
        case("not all", call(replace_all=False), ONCE),
        case("multiple", call(allow_multiple=True), ReplaceText("x\n", "y\n", None)),
        case("unused members are null", call(file_text=None, insert_line=None), ONCE),
        case("an empty old text creates", call(old_str=""), Create("y\n")),
        case("escapes stay", call(old_str="a\\nb"), ReplaceText("a\\nb", "y\n")),
        case("CRLF and blanks stay", call(old_str=" a \r\n"), ReplaceText(" a \r\n", "y\n")),
        case("markers are text", call(new_str="<<<<<<< SEARCH\n"),
             ReplaceText("x\n", "<<<<<<< SEARCH\n")),
        # several edits of one file
        case(
            "edits",
            {"file_path": "a.py", "edits": [
                {"old_string": "x\n", "new_string": "y\n"},
                {"old_string": "p", "new_string": "q", "replace_all": True},
            ]},
            ONCE, ReplaceText("p", "q", None),
        ),
        case(
            "edits as a text",
            {"path": "a.py", "edits": json.dumps([{"old_string": "x\n", "new_string": "y\n"}])},
            ONCE,
        ),
        # the text-editor tool
        case("create", {"command": "create", "path": "a.py", "file_text": "t"}, Create("t")),
        case("insert", {"command": "insert", "path": "a.py", "insert_line": 0, "insert_text": "t"},
             InsertAt(0, "t\n")),
        case("the command decides", call(command="str_replace", file_text=""), ONCE),
        case("insert_line alone", {"path": "a.py", "insert_line": 1, "new_str": "t"},
             InsertAt(1, "t\n")),
        case("view", [{"command": "view", "path": "a.py", "old_str": None}, call()], ONCE),
        # named
        case("Edit", named("Edit", **call()), ONCE),
        case("an unknown name with the keys of an edit", named("find_and_change", **call()), ONCE),
        case("Write", named("Write", file_path="a.py", content="t"), Write("t")),
        case("write_file", named("write_file", file_path="a.py", content=""), Write("")),
        case("writeFile", named("writeFile", filePath="a.py", contents="t"), Write("t")),
        case("create by new text", named("create_file", path="a.py", new_str="t"), Create("t")),
        case("functionCall", {"functionCall": {"name": "replace", "args": call()}}, ONCE),
        case("a message's calls",
             {"role": "assistant", "content": None, "tool_calls": [
                 {"id": "1", "type": "function",
                  "function": {"name": "edit", "arguments": json.dumps(call())}}]}, ONCE),
        case("the whole response is a file", {"file_path": "n.py", "content": "t"}, Write("t")),
        case("or several", [{"file_path": "a.py", "content": "t"},
                            {"file_path": "a.py", "content": "u"}], Write("t"), Write("u")),
    ],
)  # fmt: skip
def test_parses_to(value: Any, ops: list[Op]) -> None:
    assert [op for _, op in said(value)] == ops


@pytest.mark.parametrize(
    "value",
    [
        named("view_file", path="a.py"), named("Read", file_path="a.py"), named("LS", path="src/"),
        named("grep_search", path="src/", pattern="x"), named("openFile", path="a.py"),
        named("think", thought="hm"), named("run", command="ls"),
        named("str_replace_based_edit_tool", command="view", path="a.py"),
        {"command": "view", "path": "a.py"}, {"path": "/users", "content": "x", "sha": "y"},
        {"file_path": "no path here", "content": "x"}, {"name": "read", "arguments": "notes.txt"},
        {"name": "run", "arguments": "{cut"},
    ],
)  # fmt: skip
def test_is_no_edit(value: Any) -> None:
    assert said(value) == []


@pytest.mark.parametrize(
    "value",
    [
        call(new_str=None), call(old_str=1), call(path=None), call(path=""), call(path="src/"),
        call(path=7), call(file="src/b.py"), call(oldStr="z"), call(old_string="z"),
        call(expected_replacements=0), call(expected_replacements="2"),
        call(expected_replacements=True), call(replace_all="yes"), call(insert_line=3),
        call(command="undo_edit"), {"command": "undo_edit", "path": "a.py"},
        {"command": "create", "path": "a.py"},
        {"command": "insert", "path": "a.py", "new_str": "t"},
        {"command": "insert", "path": "a.py", "insert_line": -1, "new_str": "t"},
        call(edits=[call()]), {"path": "a.py", "edits": [{"new_string": "y"}]},
        {"path": "a.py", "edits": [call(), 3]}, {"path": "a.py", "edits": '[{"old_str": "x"'},
        call(more=[call()]), {"path": "a.py", "edits": [{"line": 3, "text": "x"}]},
        named("touch_file", path="a.py"), named("remember", text="t"),
        named("edit_file", path="a.py", content="t"),
        named("apply_patch", input="*** Begin Patch\n*** End Patch"),
        named("run", command="apply <<E\n*** Begin Patch\n"),
        {"name": "Edit", "arguments": '{"path": "a.py", "o'},
        {"name": "go", "arguments": '{"old_str": "x", }}'},
        {"answer": {"old_str": "x", "new_str": "y"}}, {"response": "a.py\n<<<<<<< SEARCH\n"},
    ],
)  # fmt: skip
def test_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)


def test_text_of_a_file_without_a_tool_is_read_only_alone() -> None:
    file = json.dumps({"path": "a.py", "content": "t"})
    assert said(f"\n```json\n{file}\n```\n") == [("a.py", Write("t"))]
    assert refused(f"Look:\n{file}") == (UNREADABLE, 2)
    assert refused(f"{file}\nDone.") == (UNREADABLE, 1)


def test_a_call_takes_the_lines_of_the_call() -> None:
    doc = Document([], {"a.py"}.__contains__)
    arguments = jsonish.parse(json.dumps(call(), indent=2))
    piece = read_call(doc, ToolCall("Edit", arguments, (7, 8)))
    assert piece is not None
    assert [(e.path, e.op, e.at) for e in piece.edits] == [("a.py", ONCE, (7, 8))]
    assert read_call(doc, ToolCall("view", jsonish.parse('{"path": "a.py"}'), (1, 1))) is None
    with pytest.raises(UnreadableEdit) as caught:
        read_call(doc, ToolCall("Edit", jsonish.parse("{}"), (7, 8)))
    assert caught.value.problem.line == 7
