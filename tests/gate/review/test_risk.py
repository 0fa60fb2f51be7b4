"""How much a batch asks of who reviews it: level and reasons, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from patchq.core.model.values import Base, Collision, Correction, EditOutcome, HookRun, Problem
from patchq.gate.report.codes import CODES
from patchq.gate.review.risk import risk
from tests.helpers.outcomes import EVIL, GOOD, PROPOSED, to_json

PASSED = HookRun("tests", "pre-commit", 0, 1.0, "")
APPLIED = (replace(GOOD, state="applied"),)
BASE = Base("ba5e" * 10, "declared")
PLAIN = replace(PROPOSED, edits=APPLIED, problems=(), base=BASE, hooks=(PASSED,))


def edits(**changes: Any) -> tuple[EditOutcome, ...]:
    return tuple(replace(edit, **changes) for edit in PLAIN.edits)


def warning(code: str, path: str | None = None, **more: Any) -> Problem:
    return Problem(code, "message", None, "warning", path=path, **more)


def many(count: int, **changes: Any) -> tuple[EditOutcome, ...]:
    return tuple(replace(*edits(**changes), path=f"{n}.py", id=str(n)) for n in range(count))


def diff(added: int, deleted: int, files: int = 1) -> str:
    """A diff of that size, of lines that look like headers themselves."""
    head = [f"diff --git a/{n} b/{n}\n--- a/{n}\n+++ b/{n}" for n in range(files)]
    hunk = [f"@@ -1,{deleted} +1,{added} @@", *["+--x"] * added, *["-++y"] * deleted]
    return "\n".join([*head, *hunk, ""])


TABLE: list[tuple[Mapping[str, Any], int | None, str, list[str]]] = [
    ({}, None, "low", ["passed: tests"]),
    ({"hooks": ()}, 0, "low", ["no check has run"]),
    ({"hooks": (replace(PASSED, id="gate"),)}, None, "low", ["no check has run"]),
    ({"hooks": (replace(PASSED, exit=1),)}, None, "high", ["the check tests did not pass"]),
    ({"hooks": (replace(PASSED, exit=1, stage="post-commit"),)}, None, "low", ["no check has run"]),
    ({"problems": (warning("path.review", "ci.yml"), warning("path.review", "Makefile"))}, None,
     "high", ["a person has to look at what it touches: ci.yml, Makefile"]),
    ({"problems": (warning("base.unknown"),)}, None, "high",
     ["it changes a file without saying what it has seen of it"]),
    ({"problems": (warning("match.count"),)}, None, "medium",
     ["the report warns of it (match.count)"]),
    ({"problems": (warning("worktree.dirty", "a"),)}, None, "low", ["uncommitted changes: a"]),
    ({"problems": tuple(
        warning("conflict.pending", conflicts_with=Collision(batch=batch)) for batch in "bbc")},
     None, "medium", ["it collides with 2 changes: b, c"]),
    ({"edits": edits(match="trailing_whitespace")}, None, "low", []),
    ({"edits": edits(match="indentation")}, None, "low",
     ["the quote of edit 1 was found by indentation"]),
    ({"edits": many(5, op="delete_file")}, None, "high",
     ["it deletes 5 files: 0.py, 1.py, 2.py and 2 more"]),
    ({"corrections": (Correction("1", "new", "model"),)}, None, "high",
     ["a model rewrote the new text of edit 1"]),
    ({"diff": diff(199, 0)}, None, "low", []),
    ({"diff": diff(150, 50)}, None, "medium", ["it changes 200 lines in 1 file"]),
    ({"diff": diff(1000, 0)}, None, "high", ["it changes 1000 lines in 1 file"]),
    ({"diff": diff(1, 1, 10)}, None, "medium", ["lines in 10 files"]),
    ({"diff": diff(1, 1, 50)}, None, "high", ["lines in 50 files"]),
    ({}, 19, "low", []),
    ({}, 20, "medium", ["its target has 20 commits that its base has not"]),
    ({}, 200, "high", ["its target has 200 commits that its base has not"]),
    # three of one level make the next one
    ({"diff": diff(300, 0), "edits": edits(match="elided")}, 20, "high", ["300 lines", "elided"]),
    ({"diff": diff(300, 0), "edits": edits(match="elided")}, None, "medium", ["elided"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "behind", "level", "reasons"), TABLE)
def test_risk(
    changes: Mapping[str, Any], behind: int | None, level: str, reasons: list[str]
) -> None:
    found = risk(to_json(replace(PLAIN, **changes)), behind)
    texts = [reason.text for reason in found.reasons]
    assert found.level == level, texts
    for reason in reasons:
        assert any(reason in text for text in texts), texts
    if not reasons:
        assert texts == ["passed: tests"]


def test_every_code_that_may_warn_has_a_reason_and_nothing_in_it_acts_on_a_terminal() -> None:
    for code in CODES:
        warned = replace(PLAIN, problems=(warning(code, EVIL),))
        text = " ".join(reason.text for reason in risk(to_json(warned)).reasons)
        assert "\x1b" not in text
        assert "\u202e" not in text
