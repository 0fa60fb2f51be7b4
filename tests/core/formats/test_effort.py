"""Texts made to be slow are read in a time that is proportional to their length."""

from __future__ import annotations

import pytest

from patchq.core import formats
from patchq.core.formats import find_replace, v4a, whole_file
from patchq.core.formats.catalogue import NOTHING
from patchq.core.formats.format import Document
from patchq.core.formats.registry import FORMATS
from patchq.core.formats.unified_diff import grammar as unified_diff
from tests.helpers.effort import effort

FORMS = (v4a.read, unified_diff.read, find_replace.read, whole_file.read)
LINES = [
    "FIND:", "find:", "**Find:**", "F`IND:`", "1. FIND:", "# Find", "REPLACE WITH:", "replace:",
    "re*place*:", "FILE: a", "## FILE: a", "END FILE", "CHANGE 1: x", "change 1:", "{", "[1]",
    f"From {'0' * 40} Mon Sep ", "From: a", "Files a and b differ",
    "Binary files a and b differ", "@@", "@@ x",
    "diff --git a b", "  diff --git a b", "--- a", "+++ b", "*** Begin Patch", "```", "  ~~~",
    "<source>", "<think>", "</think>", "<<<<<<< SEARCH", "  >>>>>>> REPLACE", "> <<<<< SEARCH",
    "1. <<<<<<< SEARCH", '"old_str": "x"', "\u201cold_str\u201d: 1", "\u200b<<<<<<< SEARCH",
    "```diff", "```FIND:", "```python:a.py", "~~~ x",
]  # fmt: skip
BLOCK = "src/a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("src/a.py\n````\n<<<<<<< SEARCH\n", "<source>\n"),
        ("src/a.py\n````\n<<<<<<< SEARCH\n", "<source>\n~~~\n"),
        ("", "diff --git a/x.py b/x.py\n 1 line\nx\n"),
        ("", "@@ -1 +1 @@\n a\nx\n"),
        ("", "From: a\n"),
        ("", "```\n"),
        ("", "```json\n{}\n"),
        ("", "{\n"),
        ("", "{}\n"),
        ("", "<think>x</think>\n"),
        ("", "find:\n\n"),
        ("", "x\n"),
        ("", BLOCK),
        ("", "```\n" + BLOCK),
        ("", "FILE: a.md\n````\n```\nx\n```\n````\n"),
        ("", "*** Begin Patch\n*** Update File: a\n-x\n *** End Patch\n*** End Patch\n"),
        ("", "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-x\n+y\n\n"),
    ],
)
def test_reading_is_linear(head: str, unit: str) -> None:
    def work(count: int) -> int:
        return effort(lambda: formats.parse(head + unit * count, {"src/a.py"}.__contains__))

    work(1)
    assert work(800) < 5 * work(200) + 2_000


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_may_begin_an_edit_is_no_prose(line: str) -> None:
    assert FORMATS.begins(line) is not NOTHING


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("below", ["", "x", "@@ -1 +1 @@", "+x", "```\nx\n```", "REPLACE WITH:"])
def test_a_form_that_is_not_asked_would_find_nothing(line: str, below: str) -> None:
    doc = Document([line, *below.split("\n"), "x"], {"a"}.__contains__)
    asked = FORMATS.begins(line).reads
    assert [form for form in FORMS if form not in asked and form(doc, 0)] == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "x",
        "  yield x",
        "Then run it.",
        "}",
        ")",
        "#",
        "5",
        "- a",
        "**b**",
        "<a>",
        "Fig",
        "re",
    ],
)
def test_prose_is_known_at_once(line: str) -> None:
    assert FORMATS.begins(line) is NOTHING
