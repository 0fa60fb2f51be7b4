"""A whole response: several forms in one, what stands between them, and the answers of APIs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from patchq.core.formats.registry import FORMATS
from patchq.core.model.ops import Create, Replace, Write
from patchq.core.model.values import Edit
from tests.helpers.reading import BLOCK, CREATION, block, read, refused, said

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
    assert refused(f"{SEARCH}\n@@ -1 +1 @@\n-old\n+new\n")[0] == "unreadable_edit"
    assert refused(f'{SEARCH}\n{{"old_str": "a", "new_str": "b"}}\n')[0] == ("unreadable_edit")


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
    assert code in ("unreadable_edit", "truncated")
    assert line is not None
    assert line > good.count("\n")
    assert refused(f"{damage}\nAnd:\n\n{FORMS[form]}")[0] in ("unreadable_edit", "truncated")


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
        assert refused(f"{before}</think>\n{text}") == ("unreadable_edit", line)
    line = text.count("\n") + 1
    assert refused(f"{text}So.</think>\n{text}") == ("unreadable_edit", line)


def test_creations_without_a_path_of_their_own_are_refused() -> None:
    assert refused(f"{V4A}\nNext:\n{CREATION}") == ("unreadable_edit", 8)
