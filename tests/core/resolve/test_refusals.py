"""What a refused edit of any form is told."""

from __future__ import annotations

import pytest

from patchq.core.model.ops import (
    Anchored,
    InParagraph,
    InsertAt,
    Occurrences,
    Op,
    PatchHunk,
    ReplaceText,
)
from tests.helpers.ops import batch, plan


@pytest.mark.parametrize(
    ("op", "code", "said"),
    [
        (ReplaceText("x", "y", 3, stated=True), "match.count", "2 times"),
        (Occurrences("x", "y", (3,)), "match.none", "2 times"),
        (ReplaceText("x", "y"), "match.ambiguous", "2"),
        (ReplaceText("q", "y"), "match.none", "f.txt"),
        (InsertAt(9, "y\n"), "match.none", "2 lines"),
        (InParagraph("contains('x')", "x", "y"), "match.ambiguous", "lines 1, 2"),
        (InParagraph("contains('x')", "q", "y"), "match.none", "f.txt"),
        (PatchHunk("", "y\n"), "match.none", "quotes none"),
        (Anchored("delete", "line_pattern", "q", None, ""), "anchor.none", "'q'"),
    ],
)
def test_refusal(op: Op, code: str, said: str) -> None:
    [problem] = plan("x a\nx b\n", batch(op)).problems
    assert problem.code == code
    assert said in problem.message
    assert problem.hint
    assert problem.edit == "1"
