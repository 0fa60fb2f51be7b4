"""A whole response: several forms in one, what stands between them, and the answers of APIs."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core import formats
from patchq.core.formats.registry import FORMATS
from patchq.core.model.values import Edit
from tests.core.test_api import BY_FORMAT
from tests.helpers.effort import effort
from tests.helpers.reading import BLOCK, read, refused

FORMS = {
    name: BY_FORMAT[name]
    for name in (
        "search_replace", "find_replace", "edit_script", "indexed", "edit_calls", "v4a",
        "unified_diff", "whole_file",
    )
}  # fmt: skip
SEARCH, CALL = f"a.py\n{BLOCK}", '{"path": "a.py", "old_str": "old", "new_str": "new"}\n'


def edits(text: str, default_path: str | None = None) -> tuple[Edit, ...]:
    parsed = read(text, default_path)
    assert parsed.problems == ()
    return parsed.edits


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_in_every_setting(form: str) -> None:
    text = FORMS[form]
    (alone,) = edits(text)
    assert (alone.format, alone.path) == (form, "a.py")
    settings = {
        "prose": f"First.\n\n{text}\nLast.\n",
        "thought": f"<think>\n{text}</think>\n{text}",
        "outer fence": f"`````markdown\n{text}`````\n",
        "front lines": "\n\n\n" + text,
        "CRLF": text.replace("\n", "\r\n"),
    }
    for name, setting in settings.items():
        found = edits(setting)
        assert [(edit.path, edit.op) for edit in found] == [("a.py", alone.op)], name


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


def test_own_ids_are_kept_and_others_numbered() -> None:
    own = FORMS["indexed"]
    text = "\n".join([SEARCH, own, SEARCH, own.replace('"edit-1"', "1")])
    assert [edit.id for edit in edits(text)] == ["1'", "edit-1", "3", "1"]


DAMAGED = {
    "a stray closing": ">>>>>>> REPLACE\n",
    "a patch without its end": "*** Begin Patch\n*** Update File: src/b.py\n-x\n+y\n",
    "a patch's file alone": "*** Update File: src/b.py\n",
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


@pytest.mark.parametrize("form", FORMS)
def test_a_lone_end_of_thought_refuses(form: str) -> None:
    text = FORMS[form]
    for before in ("Hm.\n", text):
        line = before.count("\n") + 1
        assert refused(f"{before}</think>\n{text}") == ("unreadable_edit", line)
    line = text.count("\n") + 1
    assert refused(f"{text}So.</think>\n{text}") == ("unreadable_edit", line)


MARKER_LIKE = [
    "<<<<<<< SEARCH", "<<<<< SEARCH", "------- SEARCH", "<<<<<<< RENAME", "<<<<<<< DELETE",
    "=======", "=====", ">>>>>>> REPLACE", ">>>>> REPLACE", "+++++++ REPLACE", ">>>>>>> RENAME",
    ">>>>>>> DELETE", "<<<<<<<", "<<<<<<< HEAD", "   <<<<<<< SEARCH",
]  # fmt: skip
WRAPPER_LIKE = [
    "```", "````", "~~~", "```python", "```python:src/a.py", "````md", "<source>", "</source>",
    "<think>", "</think>", "---",
]  # fmt: skip
FORM_LIKE = [
    "FILE: src/b.py", "FILE:", "END FILE", "### CHANGE 1: x", "FIND:", "FIND: old",
    "REPLACE WITH:", "Replace with: new", "FILE: " + "(" * 60, "```a:" + "`" * 60, "*" * 60,
    "*** Begin Patch", "*** Update File: src/a.py", "*** Add File: x.py", "*** Move to: y.py",
    "*** Delete File: src/a.py", "*** End of File", "*** End Patch", "@@", "@@ def f():", "EOF",
    "apply_patch <<'EOF'", "diff --git a/src/a.py b/src/a.py", "--- a/src/a.py", "+++ b/src/a.py",
    "--- /dev/null", "+++ /dev/null", "@@ -1 +1 @@", "@@ ... @@", "-old", "+new", " old", "+",
    "\\ No newline at end of file", "rename from src/a.py", "rename to x.py", "```diff", "-- ",
    f"From {'0' * 40} Mon Sep 17 00:00:00 2001", "From: A <a@b.c>", "Date: x", "Subject: [PATCH] x",
    '{"old_str": 1}', '{"path": "src/a.py", "old_str": "old", "new_str": "new"}', "```json",
    '{"file": "src/a.py", "edits": [', '{"type": "delete", "anchor": {"type": "line_pattern",',
    '"selected": "x"}}', "]}", "[", "{", "}", '"', '{"contextualEdits": [', '"searchPattern": {',
    '{"id": 1, "type": "deletion", "target": "x"},', '{"edits": [', '{"choices": [{"message":',
    '{"name": "apply_patch", "arguments": "*** Begin Patch\\n*** End Patch"}', "// x", "/*",
    '{"role": "assistant", "content": "src/a.py"}', '"old_string": "', "\\\"",
]  # fmt: skip
PATH_LIKE = ["src/a.py", "`src/b.py`:", "## Makefile", "new.txt", "In `src/a.py`, `src/b.py`:"]
PLAIN = ["", " ", "\r", "old", "    new", "\t", "\u00a0", "\u200b", "\0", "\ud7ff", "é"]

any_line = st.one_of(
    st.sampled_from(MARKER_LIKE + WRAPPER_LIKE + FORM_LIKE + PATH_LIKE + PLAIN),
    st.text(max_size=12),
    st.text(alphabet="<>=-+`~ #*:./aS\r", max_size=20),
)
any_text = st.one_of(st.text(), st.lists(any_line, max_size=40).map("\n".join))


@given(any_text, st.sampled_from([None, "src/a.py"]))
def test_every_text_is_read_or_refused(text: str, default_path: str | None) -> None:
    parsed = read(text, default_path)
    count = text.count("\n") + 1
    for problem in parsed.problems:
        assert problem.code in ("response.unreadable_edit", "response.truncated", "edit.dependency")
        assert problem.line is not None
        assert 1 <= problem.line <= count
        assert problem.message.startswith(f"line {problem.line}, column ")
        assert problem.hint
    assert not (parsed.edits and parsed.problems)
    spans = [edit.at for edit in parsed.edits]
    assert all(first <= last <= count for first, last in spans)
    assert all(one[0] <= other[0] for one, other in pairwise(spans))


PRETTY = json.dumps(json.loads(CALL), indent=2)
WHOLE = (text for name, text in FORMS.items() if name != "unified_diff")  # has its count
CUT = [*WHOLE, PRETTY, "FILE: a.py\nx\ny\nEND FILE"]


@pytest.mark.parametrize("text", [*CUT, f"[{PRETTY},\n{CALL}]"])
def test_a_response_cut_anywhere_is_no_edit(text: str) -> None:
    text = text.strip()
    for length in range(len(text) - 3 * text.endswith("```")):
        parsed = read(text[:length])
        assert parsed.edits == (), text[:length]
        assert parsed.problems or length < text.index("a.py") + 6, text[:length]


def test_cut_responses_never_lose_a_begun_block() -> None:
    text = f"Hi.\n\nsrc/a.py\n{BLOCK}\nsrc/b.py\n```python\n{BLOCK}```\nDone.\n"
    first = text.index("REPLACE") + len("REPLACE")
    heading = text.index("src/b.py") + len("src/b")
    second = text.rindex("REPLACE") + len("REPLACE")
    for length in range(text.index("<<<") + 3, len(text)):
        parsed = read(text[:length])
        complete = 2 if length >= second else 1 if first <= length < heading else 0
        if text[:length].endswith(("\n`", "\n``")):
            complete = 0
        assert len(parsed.edits) == complete, text[:length]


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("src/a.py\n````\n<<<<<<< SEARCH\n", "<source>\n~~~\n"),
        ("", "diff --git a/x.py b/x.py\n 1 line\nx\n"), ("", "From: a\n"), ("", "```json\n{}\n"),
        ("", "{\n"), ("", "{}\n"), ("", "<think>x</think>\n"), ("", f"src/a.py\n{BLOCK}"),
        ("", "FILE: a.md\n````\n```\nx\n```\n````\n"),
        ("", "*** Begin Patch\n*** Update File: a\n-x\n *** End Patch\n*** End Patch\n"),
        ("", "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-x\n+y\n\n"),
    ],
)  # fmt: skip
def test_reading_is_linear(head: str, unit: str) -> None:
    def work(count: int) -> int:
        return effort(lambda: formats.parse(head + unit * count, {"src/a.py"}.__contains__))

    work(1)
    assert work(800) < 5 * work(200) + 2_000


A, B = f"src/a.py\n{BLOCK}", f"src/b.py\n{BLOCK}"
WORDS = ("think", "Thinking", "THOUGHT", "reasoning", "reflection", "scratchpad", "analysis")
SHAPES = ("<{}>", "<{} id='1'>", "<seed:{}>", "<my-{}>", "<a:b-{}>", "[{}]", "◁{}▷", "<|{}|>")


def check_only_a(text: str) -> None:
    """The text has the one edit of `src/a.py`, in the lines that it really has."""
    parsed = read(text)
    last = text[: text.rindex("REPLACE")].count("\n") + 1
    assert [(edit.path, edit.at[1]) for edit in parsed.edits] == [("src/a.py", last)], text
    assert "<|" not in parsed.prose


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_thinking_is_known_in_every_spelling(word: str, shape: str) -> None:
    opening = shape.format(word)
    at = 2 if opening.startswith("<|") else 1
    closing = f"{opening[:at]}/{opening[at:]}".replace(" id='1'", "")
    for text in (f"{opening}\n{B}{closing}\n{A}", f"  {opening} so\n{B}{closing}{A}"):
        check_only_a(text)


@pytest.mark.parametrize(
    "thought",
    [
        f"<think>a</think>\n<think>\n{B}</think>",
        f"<think>\n<think>\n{B}</think>\n{B}</think>",
        f"<think>\na <think> b\n{B}</think>",
        f"<think>\nno `</think>` yet\n{B}</think>",
        f"[THINK]\n</think>\n{B}[/think]",
        f"<|channel|>plan<|message|>{B}<|end|><|start|>assistant<|channel|>final<|message|>",
        f"<|start|>assistant<|channel|>plan<|message|>{B}\n<|channel|>final<|message|>",
    ],
)
def test_a_thought_ends_where_it_ends(thought: str) -> None:
    check_only_a(f"{thought}\n{A}<|return|>\n" if "channel" in thought else f"{thought}\n{A}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"<think>\n<think>\n</think>\n{A}", "truncated"),
        (f"<|channel|>analysis<|message|>a\n{A}", "truncated"),
        (f"<|channel|>analysis<|message|>a <|channel|>final<|message|>{A}", "truncated"),
        ("<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>",
         "unreadable_edit"),
    ],
)  # fmt: skip
def test_thoughts_without_an_answer(text: str, code: str) -> None:
    assert refused(text)[0] == code
