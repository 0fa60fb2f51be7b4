"""A whole response: several forms in one, what stands between them, and the answers of APIs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from patchq.core.formats.registry import FORMATS
from patchq.core.model.ops import Create, PatchHunk, Replace, Write
from patchq.core.model.values import Edit
from tests.helpers.blocks import BLOCK, CREATION, block, read, said

V4A = "*** Begin Patch\n*** Update File: src/a.py\n-old\n+new\n*** End Patch\n"
DIFF = "```diff\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n```\n"
CALL = '{"path": "src/a.py", "old_str": "old", "new_str": "new"}\n'
PAIR = "FILE: src/a.py\n\nFIND:\n```\nold\n```\nREPLACE WITH:\n```\nnew\n```\n"
WHOLE = "```python:src/a.py\nnew\n```\n"
SEARCH = f"src/a.py\n{BLOCK}"
SCRIPT = json.dumps(
    {
        "file": "src/a.py",
        "edits": [
            {
                "type": "replace",
                "anchor": {"type": "line_pattern", "selected": "old"},
                "content": "new",
            }
        ],
    }
)
INDEXED = (
    '{"edits": [{"id": ID, "type": "modification", "file": "src/a.py", "target": "old",'
    ' "replacement": "new"}]}\n'
)
FORMS = {
    "search_replace": SEARCH,
    "find_replace": PAIR,
    "edit_script": f"{SCRIPT}\n",
    "indexed": INDEXED.replace("ID", "null"),
    "edit_calls": CALL,
    "v4a": V4A,
    "unified_diff": DIFF,
    "whole_file": WHOLE,
}


def edits(text: str, default_path: str | None = None) -> tuple[Edit, ...]:
    parsed = read(text, default_path)
    assert parsed.problems == ()
    return parsed.edits


def refused(text: str) -> tuple[str, int | None]:
    parsed = read(text)
    assert parsed.edits == ()
    (problem,) = parsed.problems
    assert problem.hint
    return problem.code, problem.line


# ---------------------------------------------------------------- every form


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_in_every_setting(form: str) -> None:
    text = FORMS[form]
    (alone,) = edits(text)
    assert (alone.format, alone.path, alone.id) == (form, "src/a.py", "1")
    settings = {
        "prose": f"First.\n\n{text}\nLast.\n",
        "thought": f"<think>\n{text}</think>\n{text}",
        "outer fence": f"`````markdown\n{text}`````\n",
        "front lines": "\n\n\n" + text,
    }
    for name, setting in settings.items():
        found = edits(setting)
        assert [(edit.path, edit.op) for edit in found] == [("src/a.py", alone.op)], name


@pytest.mark.parametrize("form", FORMS)
def test_a_response_with_crlf(form: str) -> None:
    (edit,) = edits(FORMS[form].replace("\n", "\r\n"))
    (plain,) = edits(FORMS[form])
    assert edit == plain


def test_a_response_with_some_crlf_keeps_them() -> None:
    assert edits("n.txt\n<<<<<<< SEARCH\n=======\na\r\n>>>>>>> REPLACE\n")[0].op == Create("a\r\n")


@pytest.mark.parametrize("name", FORMATS)
def test_instructions_show_an_example_that_is_read(name: str) -> None:
    assert name == FORMATS[name].name
    paragraphs = FORMATS[name].instructions.split("\n\n")
    example = "\n\n".join(paragraphs[:-1])
    assert {edit.format for edit in edits(example)} == {name}


def test_the_manual_shows_an_example_of_every_form() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8")
    examples = re.findall(r"^(`{3,})\w*\n(.*?)^\1$", manual, re.MULTILINE | re.DOTALL)
    shown = {edit.format for _, example in examples for edit in edits(example)}
    assert shown == set(FORMATS)


# ---------------------------------------------------------------- what one form leaves to another


def test_a_path_is_inherited_by_blocks_alone() -> None:
    assert said(f"{V4A}\nAnd then:\n\n{BLOCK}")[1] == ("src/a.py", Replace("old\n", "new\n"))
    assert refused(f"{SEARCH}\n@@ -1 +1 @@\n-old\n+new\n")[0] == "response.unreadable_edit"
    assert refused(f'{SEARCH}\n{{"old_str": "a", "new_str": "b"}}\n')[0] == (
        "response.unreadable_edit"
    )


QUOTED = "src/b.py\n```python\nold\n```\n"


def test_a_fence_under_a_path_is_a_file_only_where_nothing_else_is_an_edit() -> None:
    (edit,) = edits(QUOTED)
    assert (edit.path, edit.op) == ("src/b.py", Write("old\n", quoting=True))
    for form in (form for name, form in FORMS.items() if name != "whole_file"):
        for text in (f"{QUOTED}\n{form}", f"{form}\n{QUOTED}"):
            parsed = read(text)
            assert [edit.path for edit in parsed.edits] == ["src/a.py"]
            assert [one.what for one in parsed.shown] == ["code"]


# ---------------------------------------------------------------- ids


def test_own_ids_are_kept_and_others_numbered() -> None:
    text = "\n".join([SEARCH, INDEXED.replace("ID", '"fix"'), SEARCH, INDEXED.replace("ID", "1")])
    assert [edit.id for edit in edits(text)] == ["1'", "fix", "3", "1"]


# ---------------------------------------------------------------- edits inside of edits


@pytest.mark.parametrize("inner", [V4A, DIFF, CALL, PAIR])
def test_a_block_that_holds_another_form(inner: str) -> None:
    text = "README.md\n" + block("old\n", inner)
    assert said(text) == [("README.md", Replace("old\n", inner))]


# ---------------------------------------------------------------- damage beside good edits

DAMAGED = {
    "a stray closing": ">>>>>>> REPLACE\n",
    "a patch without its end": "*** Begin Patch\n*** Update File: src/b.py\n-x\n+y\n",
    "a patch's file alone": "*** Update File: src/b.py\n",
    "an end alone": "*** End Patch\n",
    "a hunk without a file": "@@ -1 +1 @@\n-x\n+y\n\nDone.\n",
    "a lone find": "FIND:\n```\nx\n```\n\nDone.\n",
    "half a call": '{"path": "src/b.py", "old_str": "x"}\n',
    "a call in single quotes": "{'path': 'src/b.py', 'old_str': x}\n",
    "tags": "<old_str>\nx\n</old_str>\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_what_looks_like_an_edit_refuses_the_rest(form: str, damage: str) -> None:
    good = FORMS[form] + "\nAnd:\n\n"
    code, line = refused(good + damage)
    assert code in ("response.unreadable_edit", "response.truncated")
    assert line is not None
    assert line > good.count("\n")
    assert refused(f"{damage}\nAnd:\n\n{FORMS[form]}")[0].startswith("response.")


@pytest.mark.parametrize("form", ["search_replace", "find_replace", "v4a", "edit_calls"])
def test_a_response_cut_anywhere_is_no_edit(form: str) -> None:
    text = FORMS[form].rstrip("\n")
    for length in range(len(text)):
        if not (form == "find_replace" and text[:length].endswith("new\n``")):
            assert read(text[:length]).edits == (), text[:length]


# ---------------------------------------------------------------- thinking blocks


@pytest.mark.parametrize("form", FORMS)
def test_a_lone_end_of_thought_refuses(form: str) -> None:
    text = FORMS[form]
    for before in ("Hm.\n", text):
        line = before.count("\n") + 1
        assert refused(f"{before}</think>\n{text}") == ("response.unreadable_edit", line)
    line = text.count("\n") + 1
    assert refused(f"{text}So.</think>\n{text}") == ("response.unreadable_edit", line)


# ---------------------------------------------------------------- answers of APIs

MESSAGES = {"role": "assistant", "type": "message", "model": "m"}


def messages(*content: Any, stop: str | None = "end_turn") -> dict[str, Any]:
    return {**MESSAGES, "content": list(content), "stop_reason": stop}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


ARGUMENTS = {"path": "src/a.py", "old_str": "old", "new_str": "new"}
TOOL = {"type": "tool_use", "id": "t", "name": "str_replace", "input": ARGUMENTS}
BY_STRING = {"id": "c", "type": "function"}
FUNCTION = {"name": "edit", "arguments": json.dumps(ARGUMENTS)}
ANSWERS = {
    "messages": messages(text_part("So:"), TOOL, stop="tool_use"),
    "chat": {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "So:",
                    "tool_calls": [{**BY_STRING, "function": FUNCTION}],
                },
                "finish_reason": "tool_calls",
            }
        ]
    },
    "responses": {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "So:"}]},
            {"type": "function_call", **FUNCTION},
        ],
    },
    "generate": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "So:"},
                        {"functionCall": {"name": "edit", "args": ARGUMENTS}},
                    ],
                },
                "finishReason": "STOP",
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("api", "member", "reason"),
    [
        ("messages", "stop_reason", "max_tokens"),
        ("chat", "finish_reason", "length"),
        ("responses", "status", "incomplete"),
        ("generate", "finishReason", "MAX_TOKENS"),
    ],
)
def test_an_answer_that_its_api_cut(api: str, member: str, reason: str) -> None:
    answer = json.loads(json.dumps(ANSWERS[api]))
    holder = answer if member in answer else next(iter(answer.values()))[0]
    assert member in holder
    holder[member] = reason
    parsed = read(json.dumps(answer))
    assert [problem.code for problem in parsed.problems] == ["response.truncated"]
    assert reason in parsed.problems[0].message


def test_an_unreadable_text_part_names_the_json_line() -> None:
    text = json.dumps(messages(text_part("*** Begin Patch\n")), indent=1)
    code, line = refused(text)
    assert code == "response.truncated"
    assert line is not None
    assert 1 < line < text.count("\n")


# ---------------------------------------------------------------- patches in calls

SHELL = f"apply_patch <<'EOF'\n{V4A}EOF"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"patch": V4A, "explanation": "so"}),
        ("apply_patch", json.dumps({"input": V4A})),
        ("apply_patch", V4A),
        ("shell", {"command": ["bash", "-lc", SHELL], "timeout_ms": 1000}),
    ],
)
def test_a_call_that_holds_a_patch(name: str, arguments: Any) -> None:
    part = {"type": "tool_use", "id": "t", "name": name, "input": arguments}
    for value in (messages(part), {"name": name, "arguments": arguments}):
        (edit,) = edits(json.dumps(value))
        assert (edit.format, edit.path, edit.at) == ("v4a", "src/a.py", (1, 1))
        assert isinstance(edit.op, PatchHunk)


@pytest.mark.parametrize(
    "arguments",
    [
        {"input": V4A.replace("*** End Patch\n", "")},
        {"input": V4A, "path": "src/a.py"},
        {"input": V4A, "workdir": "src"},
        {"command": ["bash", "-lc", f"cd src && {SHELL}"]},
        {"command": f"{SHELL}\nrm src/b.py"},
        {"command": f"cat > x <<'EOF'\nx\nEOF\n{SHELL}"},
        {"input": V4A, "patch": V4A},
    ],
)
def test_a_call_that_does_more_than_patch(arguments: Any) -> None:
    value = {"name": "apply_patch", "arguments": arguments}
    assert refused(json.dumps(value)) == ("response.unreadable_edit", 1)
    part = {"type": "tool_use", "id": "t", "name": "apply_patch", "input": arguments}
    assert refused(json.dumps(messages(part))) == ("response.unreadable_edit", 1)


# ---------------------------------------------------------------- mails


def test_creations_without_a_path_of_their_own_are_refused() -> None:
    assert refused(f"{V4A}\nNext:\n{CREATION}") == ("response.unreadable_edit", 8)
