"""Where JSON stands in a response, and what of it is an edit, prose or unreadable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        pytest.param(f"  {EDIT}", ONE, id="indented"),
        pytest.param(f"[\n// one\n{EDIT}, /* two */\n{OTHER},\n]", TWO, id="comments and commas"),
        pytest.param(PRETTY.replace("\n", "\r\n"), ONE, id="CRLF"),
        # fenced
        pytest.param(f"~~~~json edits\n{PRETTY}\n~~~~", ONE, id="tildes"),
        pytest.param(f"<code>\n{PRETTY}\n</code>", ONE, id="tag"),
        pytest.param(f"```json\n{EDIT}```\nDone.", ONE, id="end on the last line"),
        pytest.param(f"## `own.py`\n```json\n{EDIT.replace('a.py', 'a/own.py')}\n```",
                     [("a/own.py", ReplaceText("x", "y"))], id="under the end of its path"),
        # strings
        pytest.param('{"path": "a.py", "old_str": "```\n{\n", "new_str": ""}',
                     [("a.py", ReplaceText("```\n{\n", ""))], id="raw lines"),
        # prose
        pytest.param('{"name": "x", "version": 1}', [], id="other JSON"),
        pytest.param(f"[1] see\n{EDIT}", ONE, id="a note before"),
        pytest.param(f'["quoted\n{EDIT}', ONE, id="an open quote before"),
        pytest.param(f'{{"a": 1}}\n{EDIT}\n[]', ONE, id="other values around"),
        pytest.param("```c\nint main()\n{\n  return 0;\n}\n```", [], id="code"),
        pytest.param('{"edits": []}', [], id="no edits"),
        pytest.param('{"edits": [{"id": 1}]}', [], id="other edits"),
        pytest.param('{"edits": "[1]", "path": "a.py"}', [], id="other text"),
        pytest.param("[x] done\n[link](url)\n{{ var }}", [], id="no JSON"),
    ],
)  # fmt: skip
def test_reads(text: str, expected: list[tuple[str, Any]]) -> None:
    assert said(text) == expected


# ---------------------------------------------------------------- unreadable


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
        pytest.param("{'path': 'a.py', 'old_str': 'x', 'new_str': 'y'}", UNREADABLE, 1,
                     id="single quotes"),
        pytest.param("{\n  path: 'a.py',\n  old_str: 'x',\n}", UNREADABLE, 2, id="no quotes"),
        pytest.param(EDIT.replace('"path"', "“path”").replace('"old_str"', "“old_str”"),
                     UNREADABLE, 1, id="curly quotes"),
        pytest.param(EDIT.replace('"', '\\"'), UNREADABLE, 1, id="escaped quotes"),
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


def test_place_has_a_column() -> None:
    (problem,) = read('Hi.\n  {"old_str": "x" 1}').problems
    assert problem.message.startswith("line 2, column 19: ")


@pytest.mark.parametrize("whole", [EDIT, PRETTY, f"[{PRETTY},\n{OTHER}]", f"```json\n{PRETTY}\n"])
def test_begun_edit_is_never_lost(whole: str) -> None:
    """Wherever the response is cut, it is refused."""
    for length in range(whole.index("{") + 1, whole.rindex("}")):
        assert refused(whole[:length])[0] == TRUNCATED, whole[:length]


# ---------------------------------------------------------------- calls of an API


# ---------------------------------------------------------------- every value

KEYS = [
    "path", "file", "edits", "contextualEdits", "old_str", "new_str", "file_text", "insert_line",
    "command", "content", "anchor", "selected", "type", "target", "replacement", "insertion",
    "afterText", "occurrences", "searchPattern", "before", "paragraph", "sentences",
    "maxDistance", "id", "dependsOn", "cascades", "confidence", "reason", "summary", "lineHint",
    "all", "name", "input", "arguments", "tool_calls", "function", "expected_replacements",
    "replace_all",
]  # fmt: skip
WORDS = ["a.py", "modification", "addition", "insert_after", "line_pattern", "contains('x')"]
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(KEYS), st.one_of(inner, st.sampled_from(WORDS)), max_size=6
        ),
    ),
    max_leaves=12,
)


@given(values)
def test_every_value_is_read_or_refused(value: Any) -> None:
    assert {problem.line for problem in read(value).problems} <= {1}
