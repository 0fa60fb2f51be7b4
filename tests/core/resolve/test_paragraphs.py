"""Contextual edits by paragraph."""

from __future__ import annotations

import pytest

from patchq.core.model.ops import InParagraph
from tests.helpers.ops import result

TEXT = "The API is old. Use it.\n\nThe CLI is old. Do not.\n"
API = "contains('API')"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        (TEXT, InParagraph(API, "old", "new"), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph("contains('The')", "old", "new"), "match.ambiguous"),
        (TEXT, InParagraph("contains('The')", "old", "n", every=True), TEXT.replace("old", "n")),
        (TEXT, InParagraph("contains('The')", "old", "n", window=(3, 3)),
         "The API is old. Use it.\n\nThe CLI is n. Do not.\n"),
        (TEXT, InParagraph(f"!{API} && contains('is')", "old", "new"),
         "The API is old. Use it.\n\nThe CLI is new. Do not.\n"),
        (TEXT, InParagraph(API, "old", "new", distance=4), TEXT.replace("old", "new", 1)),
        (TEXT, InParagraph(API, "old", "new", distance=3), "match.none"),
        (TEXT, InParagraph(API, "Do", "Did"), "match.none"),
        (TEXT, InParagraph(API, None, "Gone.", sentences=1),
         "Gone. Use it.\n\nThe CLI is old. Do not.\n"),
        (TEXT, InParagraph(API, None, "Gone.", sentences=2), "match.none"),
        ("é API aaa\n", InParagraph(API, "aa", "b"), "match.ambiguous"),
        ("é API é old\r\n", InParagraph(API, "old", "a\nb"), "é API é a\r\nb\r\n"),
        ("API x y\n", InParagraph(API, "x", "x y"), "already"),
        (" " * 50_000 + "\nAPI x\n", InParagraph(API, "x", "y"), " " * 50_000 + "\nAPI y\n"),
    ],
    ids=[
        "the paragraph decides", "two places", "all", "the window decides", "a predicate",
        "near enough", "too far", "another paragraph", "a sentence", "another number of sentences",
        "places that overlap", "line ends and letters", "already there", "a long blank line",
    ],
)  # fmt: skip
def test_paragraph(before: str, op: InParagraph, after: str) -> None:
    assert result(before, op) == after
