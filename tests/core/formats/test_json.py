"""Where JSON is in a response, what of it is an edit, and how edits depend on each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchq.core.model.ops import ReplaceText
from tests.helpers.reading import read, refused, said

UNREADABLE = "unreadable_edit"
TRUNCATED = "truncated"
EDIT = '{"path": "a.py", "old_str": "x", "new_str": "y"}'
OTHER = '{"path": "src/b.py", "old_str": "p", "new_str": "q"}'
PRETTY = json.dumps(json.loads(EDIT), indent=2)
ONE = [("a.py", ReplaceText("x", "y"))]
TWO = [*ONE, ("src/b.py", ReplaceText("p", "q"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # bare
        (f"  {EDIT}", ONE),  # indented
        (f"[\n// one\n{EDIT}, /* two */\n{OTHER},\n]", TWO),  # comments and commas
        (PRETTY.replace("\n", "\r\n"), ONE),  # CRLF
        # fenced
        (f"~~~~json edits\n{PRETTY}\n~~~~", ONE),  # tildes
        (f"<code>\n{PRETTY}\n</code>", ONE),  # tag
        (f"```json\n{EDIT}```\nDone.", ONE),  # end on the last line
        (f"## `own.py`\n```json\n{EDIT.replace('a.py', 'a/own.py')}\n```",
            [("a/own.py", ReplaceText("x", "y"))]),  # under the end of its path
        # strings
        ('{"path": "a.py", "old_str": "```\n{\n", "new_str": ""}',
            [("a.py", ReplaceText("```\n{\n", ""))]),  # raw lines
        # prose
        ('{"name": "x", "version": 1}', []),  # other JSON
        (f"[1] see\n{EDIT}", ONE),  # a note before
        (f'["quoted\n{EDIT}', ONE),  # an open quote before
        ("```c\nint main()\n{\n  return 0;\n}\n```", []),  # code
        ('{"edits": [{"id": 1}]}', []),  # other edits
        ('{"edits": "[1]", "path": "a.py"}', []),  # other text
        ("[x] done\n[link](url)\n{{ var }}", []),  # no JSON
    ],
)  # fmt: skip
def test_reads(text: str, expected: list[tuple[str, Any]]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        # cut
        pytest.param(EDIT[:-8], TRUNCATED, 1, id="cut in a string"),
        pytest.param(f"Hi.\n```json\n{PRETTY[:30]}", TRUNCATED, 3 - 1, id="cut in a fence"),
        pytest.param(f"{EDIT}\n{OTHER[:20]}", TRUNCATED, 2, id="second value cut"),
        pytest.param(f"[{EDIT}, /* and", TRUNCATED, 1, id="cut in a comment"),
        # broken
        pytest.param(f"```json\n{EDIT.replace(':', '=', 1)}\n```", UNREADABLE, 2, id="no colon"),
        pytest.param(f"[\n...\n{EDIT}\n]", UNREADABLE, 4, id="elided list"),
        pytest.param("{\n  path: 'a.py',\n  old_str: 'x',\n}", UNREADABLE, 2, id="no quotes"),
        pytest.param(EDIT.replace('"path"', "“path”").replace('"old_str"', "“old_str”"),
                     UNREADABLE, 1, id="curly quotes"),
        pytest.param('{"path": "a.py", "path": "b.py", "old_str": "x"}', UNREADABLE, 1,
                     id="a key twice") ,
        pytest.param('{"path": "a.py",\n oops\n\n"old_str": "x"}', UNREADABLE, 4,
                     id="a member on its own"),
        pytest.param('{"file": "a.py", "edits": [oops, {"anchor": {}}]}', UNREADABLE, 1,
                     id="broken script"),
        # text behind
        pytest.param(f"{EDIT} and so on", UNREADABLE, 1, id="text behind"),
        pytest.param(f"data = [\n{EDIT}\n]", UNREADABLE, 3, id="bracket behind"),
        pytest.param(f"```json\n{EDIT} done", UNREADABLE, 2, id="text without an end"),
        pytest.param(f"```json {EDIT}\n```", UNREADABLE, 1, id="beside the fence"),
        # not certain
        pytest.param(f"tests/x.json\n```json\n{EDIT}\n```", UNREADABLE, 2, id="a file's text"),
        pytest.param(f"[[{EDIT}]]", UNREADABLE, 1, id="a list in a list"),
        pytest.param(f'[{EDIT}, "*** Begin Patch"]', UNREADABLE, 1, id="a patch in a list"),
        pytest.param(json.dumps({"name": "edit", "parameters": {"properties": {"old_str": {}}},
                                 "description": "…"}), UNREADABLE, 1, id="a tool's schema"),
        pytest.param("So:\n" + json.dumps({"type": "message", "content": [
            {"type": "tool_use", "name": "Edit", "input": json.loads(EDIT)}]}),
            UNREADABLE, 2, id="an API's answer in a text"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str, line: int) -> None:
    assert refused(text) == (code, line)


DEPENDENCY = "edit.dependency"


def change(id: str | None = None, **members: Any) -> dict[str, Any]:
    edit = {"type": "modification", "file": "a.py", "target": "x", "replacement": "y", "id": id}
    return edit | members


def context(id: str | None = None, **members: Any) -> dict[str, Any]:
    pattern = {"before": "a", "target": "x", "after": "b"}
    edit = {"type": "modification", "file": "a.py", "searchPattern": pattern, "replacement": "y"}
    return edit | {"id": id} | members


def indexed(*edits: Any) -> dict[str, Any]:
    return {"edits": list(edits)}


def contextual(*edits: Any) -> dict[str, Any]:
    return {"contextualEdits": list(edits)}


def lines(*values: Any) -> str:
    return "\n".join(map(json.dumps, values))


def fences(*values: Any) -> str:
    return "\n\nAnd:\n\n".join(f"```json\n{json.dumps(value)}\n```" for value in values)


def test_unknown_id_in_cascades_is_a_warning() -> None:
    (warning,) = read(fences(indexed(change("a", cascades=["c"])), indexed(change("b")))).problems
    told = warning.code, warning.severity, warning.edit, warning.line
    assert told == (DEPENDENCY, "warning", "a", 2)
    assert "'c'" in warning.message


@pytest.mark.parametrize(
    ("values", "code", "line"),
    [
        ([indexed(change("a")), indexed(change("b", dependsOn="c"))], DEPENDENCY, 2),
        ([indexed(change("a", dependsOn="a"))], DEPENDENCY, 1),
        ([indexed(change()), indexed(change("a", cascades="a"))], DEPENDENCY, 2),
        ([indexed(change("a")), indexed(change("a")), indexed(change("b", dependsOn="a"))],
            UNREADABLE, 2),
        ([indexed(change("a")), contextual(context("a")), contextual(context("a"))], UNREADABLE, 3),
    ],
)  # fmt: skip
def test_relation_is_an_error(values: list[Any], code: str, line: int) -> None:
    assert refused(lines(*values)) == (code, line)
