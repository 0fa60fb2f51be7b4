"""Which edits of a batch count."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import InContext, Occurrences, ReplaceText
from patchq.core.model.values import Edit, Plan
from tests.helpers.ops import edit, plan, stating
from tests.helpers.trees import RULES, told


def states(done: Plan) -> list[str]:
    return [outcome.state for outcome in done.edits]


def after(done: Plan) -> bytes | None:
    return next((change.after for change in done.changes), None)


def says(old: str, new: str, id: str, **said: object) -> Edit:
    return stating(edit(ReplaceText(old, new), id, "indexed"), **said)


@pytest.mark.parametrize(
    ("stated", "state"), [(None, "applied"), (0.7, "applied"), (0.69, "skipped"), (0.0, "skipped")]
)
def test_an_edit_below_the_threshold_is_left_out(stated: float | None, state: str) -> None:
    done = plan("a b\n", [says("a", "x", "1", confidence=stated), says("b", "y", "2")])
    assert states(done) == [state, "applied"]
    assert told(done) == (["edit.confidence"] if state == "skipped" else [])


def test_nothing_but_doubtful_edits_is_refused() -> None:
    done = plan("a b\n", [says("a", "x", "1", confidence=0.1), says("b", "y", "2", confidence=0.2)])
    assert done.refused
    assert told(done) == ["edit.confidence"] * 2
    rules = replace(RULES, confidence=0.1)
    assert not plan("a\n", [says("a", "x", "1", confidence=0.1)], rules).refused


def test_a_dependent_edit_is_cancelled_by_an_applied_one() -> None:
    done = plan("a b\n", [says("b", "y", "2", depends_on=("1",)), says("a", "x", "1")])
    assert states(done) == ["cancelled", "applied"]
    assert done.edits[0].cancelled_by == "1"
    assert after(done) == b"x b\n"


def test_a_dependent_edit_counts_where_the_other_is_left_out() -> None:
    first = says("a", "x", "1", confidence=0.1)
    done = plan("a b\n", [first, says("b", "y", "2", depends_on=("1",))])
    assert states(done) == ["skipped", "applied"]


def test_a_chain_of_thousands_is_decided() -> None:
    text = "".join(f"line {i}\n" for i in range(3000))
    edits = [says(f"line {i}\n", f"l {i}\n", str(i), depends_on=(str(i + 1),)) for i in range(3000)]
    done = plan(text, edits)
    assert states(done) == ["cancelled", "applied"] * 1500


def backup(target: str, new: str, id: str, of: str | None) -> Edit:
    return stating(edit(InContext("", target, "", new), id, "contextual"), fallback_of=of)


@pytest.mark.parametrize(
    ("indexed", "expected", "written"),
    [
        (says("a", "x", "1"), ["applied", "skipped"], b"x b\n"),
        (says("z", "x", "1"), ["skipped", "applied"], b"a y\n"),
        (says("a", "x", "1", confidence=0.1), ["skipped", "applied"], b"a y\n"),
    ],
    ids=["the edit has its place", "it has none", "it is doubtful"],
)
def test_a_backup_of_the_same_id(indexed: Edit, expected: list[str], written: bytes) -> None:
    done = plan("a b\n", [indexed, backup("b", "y", "1", "1")])
    assert not done.refused
    assert states(done) == expected
    assert after(done) == written


def test_what_depends_on_an_edit_depends_on_its_backup() -> None:
    edits = [
        says("z", "x", "1"),
        backup("a", "y", "1", "1"),
        says("b", "z", "2", depends_on=("1",)),
    ]
    assert states(plan("a b\n", edits)) == ["skipped", "applied", "cancelled"]


BOTH_ORDERS = pytest.mark.parametrize("order", [1, -1], ids=["behind it", "before it"])


@BOTH_ORDERS
@pytest.mark.parametrize(
    "other",
    [
        InContext("", "a", " b", "x"),
        InContext("", "a b\n", "", "x b\n"),
        InContext("", "a ", "b", "x "),
    ],
    ids=["of the same characters", "of the line", "of more characters"],
)
def test_a_contextual_edit_of_the_same_span_and_result_is_a_backup(
    order: int, other: InContext
) -> None:
    twin = edit(Occurrences("a", "x", (1,)), "1", "indexed")
    backed = edit(other, "2", "contextual")
    apart = edit(InContext("", "c", "", "y"), "3", "contextual")
    done = plan("a b\nc\n", [twin, backed, apart][::order])
    assert states(done)[::order] == ["applied", "skipped", "applied"]
    assert done.edits[1].cancelled_by == "1"
    assert after(done) == b"x b\ny\n"


@BOTH_ORDERS
@pytest.mark.parametrize(
    "other",
    [InContext("", "a", " b", "q"), InContext("", "a b", "", "x y"), InContext("", "a", " b", "")],
    ids=["another result", "more than that", "nothing"],
)
def test_another_intent_that_overlaps_is_a_conflict(order: int, other: InContext) -> None:
    twin = edit(Occurrences("a", "x", (1,)), "1", "indexed")
    assert told(plan("a b\n", [twin, edit(other, "2", "contextual")][::order])) == [
        "conflict.overlap"
    ]
