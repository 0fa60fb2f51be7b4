"""Texts made to be slow are read in a time that is proportional to their length."""

from __future__ import annotations

import pytest
from effort import effort

from patchq import formats
from patchq.formats.reader import PROSE

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


@pytest.mark.parametrize(
    "line",
    [
        "FIND:", "find:", "**Find:**", "F`IND:`", "1. FIND:", "# Find", "REPLACE WITH:", "replace:",
        "re*place*:", "FILE: a", "## FILE: a", "END FILE", "CHANGE 1: x", "change 1:", "{", "[1]",
        "From 0123", "From: a", "Files a and b differ", "Binary files a and b differ", "@@", "@@ x",
        "diff --git a b", "  diff --git a b", "--- a", "+++ b", "*** Begin Patch", "```", "  ~~~",
        "<source>", "<think>", "</think>", "<<<<<<< SEARCH", "  >>>>>>> REPLACE", "> <<<<< SEARCH",
        "1. <<<<<<< SEARCH", '"old_str": "x"', "\u201cold_str\u201d: 1", "\u200b<<<<<<< SEARCH",
    ],
)  # fmt: skip
def test_a_line_that_may_begin_an_edit_is_no_prose(line: str) -> None:
    assert not PROSE.match(line)


@pytest.mark.parametrize("line", ["", "  ", "x", "  yield x", "Then run it.", "}", ")", "#", "5"])
def test_prose_is_known_at_once(line: str) -> None:
    assert PROSE.match(line)
