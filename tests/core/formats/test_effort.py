"""Texts made to be slow are read in a time that is proportional to their length."""

from __future__ import annotations

import pytest

from patchq.core import formats
from tests.helpers.effort import effort

BLOCK = "src/a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("src/a.py\n````\n<<<<<<< SEARCH\n", "<source>\n"),
        ("src/a.py\n````\n<<<<<<< SEARCH\n", "<source>\n~~~\n"),
        ("", "diff --git a/x.py b/x.py\n 1 line\nx\n"), ("", "From: a\n"), ("", "```json\n{}\n"),
        ("", "{\n"), ("", "{}\n"), ("", "<think>x</think>\n"), ("", BLOCK),
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
