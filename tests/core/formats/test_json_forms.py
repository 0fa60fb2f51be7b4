"""Edits in JSON: calls with and without a tool's name, scripts, indexed and contextual edits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core.model.ops import Anchored, Create, InParagraph, InsertAt, Op, ReplaceText, Write
from tests.helpers.reading import refused, said

UNREADABLE = "unreadable_edit"
ONCE = ReplaceText("x\n", "y\n")
PARTS = [
    {"old_string": "x\n", "new_string": "y\n"},
    {"old_string": "p", "new_string": "q", "replace_all": True},
]


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
        case("expected", call(expected_replacements=3), ReplaceText("x\n", "y\n", 3, stated=True)),
        case("expected as a float", call(expectedReplacements=2.0),
            ReplaceText("x\n", "y\n", 2, stated=True)),
        case("all", call(replace_all=True), ReplaceText("x\n", "y\n", None)),
        case("multiple", call(allow_multiple=True), ReplaceText("x\n", "y\n", None)),
        case("unused members are null", call(file_text=None, insert_line=None), ONCE),
        case("an empty old text creates", call(old_str=""), Create("y\n")),
        case("CRLF and blanks stay", call(old_str=" a \r\n"), ReplaceText(" a \r\n", "y\n")),
        case("markers are text", call(new_str="<<<<<<< SEARCH\n"),
             ReplaceText("x\n", "<<<<<<< SEARCH\n")),
        # several edits of one file
        case("edits", {"file_path": "a.py", "edits": PARTS}, ONCE, ReplaceText("p", "q", None)),
        case("edits as a text", {"path": "a.py", "edits": json.dumps(PARTS[:1])}, ONCE),
        # the text-editor tool
        case("create", {"command": "create", "path": "a.py", "file_text": "t"}, Create("t")),
        case("insert", {"command": "insert", "path": "a.py", "insert_line": 0, "insert_text": "t"},
             InsertAt(0, "t\n")),
        case("the command decides", call(command="str_replace", file_text=""), ONCE),
        case("view", [{"command": "view", "path": "a.py", "old_str": None}, call()], ONCE),
        # named
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
        named("Read", file_path="a.py"), named("grep_search", path="src/", pattern="x"),
        named("openFile", path="a.py"), named("think", thought="hm"), named("run", command="ls"),
        named("str_replace_based_edit_tool", command="view", path="a.py"),
        {"command": "view", "path": "a.py"}, {"path": "/users", "content": "x", "sha": "y"},
        {"file_path": "no path here", "content": "x"}, {"name": "read", "arguments": "notes.txt"},
        {"name": "run", "arguments": "{cut"},
    ],
)  # fmt: skip
def test_is_no_edit(value: Any) -> None:
    assert said(value) == []


RE = "import re\n"
LINE = {"type": "line_pattern", "selected": "    import os"}


def edit(type: str | None = "insert_after", anchor: Any = LINE, **members: Any) -> dict[str, Any]:
    content = {} if type == "delete" else {"content": RE}
    return {"type": type, "anchor": anchor, **content, **members}


def change(**members: Any) -> dict[str, Any]:
    return {"type": "modification", "target": "x", "replacement": "y", **members}


def addition(**members: Any) -> dict[str, Any]:
    return {"type": "addition", "afterText": "x", "insertion": "y", **members}


def pattern(**members: Any) -> dict[str, Any]:
    return {"before": "b", "target": "x", "after": "a", **members}


def context(**members: Any) -> dict[str, Any]:
    edit = {"type": "modification", "searchPattern": pattern(), "replacement": "y"}
    return {**edit, **members}


def paragraph(**members: Any) -> dict[str, Any]:
    return context(searchPattern={"paragraph": "contains('p')", "target": "x", **members})


def script(*items: Any, **members: Any) -> dict[str, Any]:
    """A list of edits; its key is that of the first one's form."""
    key = "contextualEdits" if items and "searchPattern" in items[0] else "edits"
    return {"file": "a.py", key: list(items), **members}


@pytest.mark.parametrize(
    ("value", "op"),
    [
        (edit("insert_before", {"type": "import_statement", "selected": "import os", "line": 3}),
            Anchored("insert_before", "import_statement", "import os", None, RE, line=3)),
        (edit(content="x"), Anchored("insert_after", "line_pattern", "    import os", None, "x\n")),
        (edit("delete", content=None),
            Anchored("delete", "line_pattern", "    import os", None, "")),
        (edit("replace", {"type": "class_definition", "selected": "class A:", "name": "A",
                          "scope": "definition", "candidates": ["class A:", "class B:"]}),
            Anchored("replace", "class_definition", "class A:", "A", RE, scope="definition",
                     candidates=("class A:", "class B:"))),
        (edit(anchor={"type": "line_pattern", "selected": "x = (\n    1,\n)", "candidates": []}),
            Anchored("insert_after", "line_pattern", "x = (\n    1,\n)", None, RE)),
        (change(occurrences=[3, 1]), ReplaceText("x", "y", at=(1, 3))),
        (change(occurrences=[1.0, 1]), ReplaceText("x", "y", at=(1,))),
        (change(occurrence=2), ReplaceText("x", "y", at=(2,))),
        ({"type": "deletion", "target": "x", "occurrences": [2]}, ReplaceText("x", "", at=(2,))),
        (addition(), ReplaceText("", "y", before="x")),
        (context(searchPattern=pattern(before=None)), ReplaceText("x", "y", after="a")),
        (context(all=True), ReplaceText("x", "y", None, before="b", after="a")),
        ({"type": "addition", "searchPattern": {"before": "b", "after": "a"}, "insertion": "y"},
            ReplaceText("", "y", before="b", after="a")),
        (paragraph(maxDistance=50), InParagraph("contains('p')", "x", "y", distance=50)),
        (paragraph(target=None, sentences=2), InParagraph("contains('p')", None, "y", sentences=2)),
    ],
)  # fmt: skip
def test_edit_parses_to(value: Any, op: Op) -> None:
    assert said(script(value)) == [("a.py", op)]


CALLS = [
    call(new_str=None), call(old_str=1), call(path=None), call(path=""), call(path="src/"),
    call(file="src/b.py"), call(oldStr="z"), call(expected_replacements=0),
    call(expected_replacements=True), call(replace_all="yes"), call(insert_line=3),
    call(command="undo_edit"), {"command": "undo_edit", "path": "a.py"},
    {"command": "create", "path": "a.py"}, {"command": "insert", "path": "a.py", "new_str": "t"},
    {"command": "insert", "path": "a.py", "insert_line": -1, "new_str": "t"},
    call(edits=[call()]), {"path": "a.py", "edits": [{"new_string": "y"}]},
    {"path": "a.py", "edits": [call(), 3]}, {"path": "a.py", "edits": '[{"old_str": "x"'},
    call(more=[call()]), {"path": "a.py", "edits": [{"line": 3, "text": "x"}]},
    named("touch_file", path="a.py"), named("remember", text="t"),
    named("apply_patch", input="*** Begin Patch\n*** End Patch"),
    named("run", command="apply <<E\n*** Begin Patch\n"),
    {"name": "Edit", "arguments": '{"path": "a.py", "o'},
    {"name": "go", "arguments": '{"old_str": "x", }}'},
    {"answer": {"old_str": "x", "new_str": "y"}}, {"response": "a.py\n<<<<<<< SEARCH\n"},
]  # fmt: skip
SCRIPTED = [
    edit(type=None), edit(anchor="import os"), edit(anchor={"selected": "x"}),
    edit(anchor={"type": "line_pattern", "name": "x"}), edit(anchor={**LINE, "selected": 3}),
    edit(anchor={**LINE, "line": 0}), edit(anchor={**LINE, "candidates": [{"line": 3}]}),
    edit(content=""), edit("delete", content="x"), edit("replace", scope="all"),
    edit(confidence="high"), edit(content=["x"]),
]  # fmt: skip
INDEXED = [
    change(type="replace"), change(target=""), {"type": "modification", "target": "x"},
    change(replacement=1), change(type="deletion"), addition(insertion=None),
    addition(afterText=None), change(occurrences=[0]), change(occurrences=[True]),
    change(occurrences="all"), change(occurrence=1, occurrences=[2]), change(confidence=95),
    change(dependsOn=3), change(id=["x"]), {"id": "1"},
]  # fmt: skip
CONTEXTUAL = [
    context(searchPattern="x"), context(searchPattern={"before": "b"}),
    context(searchPattern=pattern(regex=True)), context(searchPattern=pattern(sentences=1)),
    context(replacement=None), context(all="yes"), paragraph(target=None),
    {"type": "addition", "searchPattern": {}, "insertion": "y"}, paragraph(paragraph="has('x')"),
    paragraph(paragraph=""), paragraph(maxDistance=-1),
]  # fmt: skip
OBJECTS = [
    script(edit(), "x"), script(edit(), old_str="x"), script(edit(), more=[{"old_str": "x"}]),
    edit(), {"edits": [change()]}, {"contextualEdits": []}, change(file="a.py"),
    [script(edit()), {"file": "a.py", "edits": [{"type": "x"}]}],
    script(context(), contextualEdits=context()), script(context(), edits=[{"from": "x"}]),
]  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        *CALLS,
        *OBJECTS,
        *(script(edit(), value) for value in SCRIPTED),
        *(script(change(), value) for value in INDEXED),
        *(script(context(), value) for value in CONTEXTUAL),
    ],
)
def test_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)
