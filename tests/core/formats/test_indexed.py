"""What indexed and contextual edits say."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.core.model.ops import InContext, InParagraph, Occurrences, Op
from tests.helpers.reading import refused, said

UNREADABLE = "unreadable_edit"


def change(**members: Any) -> dict[str, Any]:
    return {"type": "modification", "target": "x", "replacement": "y", **members}


def addition(**members: Any) -> dict[str, Any]:
    return {"type": "addition", "afterText": "x", "insertion": "y", **members}


def pattern(**members: Any) -> dict[str, Any]:
    return {"before": "b", "target": "x", "after": "a", **members}


def context(**members: Any) -> dict[str, Any]:
    return {
        "type": "modification", "searchPattern": pattern(), "replacement": "y", **members,
    }  # fmt: skip


def paragraph(**members: Any) -> dict[str, Any]:
    searched = {"paragraph": "contains('p')", "target": "x", **members}
    return context(searchPattern=searched)


def response(*items: Any, **members: Any) -> dict[str, Any]:
    return {"file": "a.py", "edits": list(items), **members}


def contexts(*items: Any, **members: Any) -> dict[str, Any]:
    return {"file": "a.py", "contextualEdits": list(items), **members}


@pytest.mark.parametrize(
    ("value", "op"),
    [
        pytest.param(change(occurrences=[3, 1]), Occurrences("x", "y", (1, 3)), id="some"),
        pytest.param(change(occurrences=[1.0, 1]), Occurrences("x", "y", (1,)), id="one twice"),
        pytest.param(change(occurrence=2), Occurrences("x", "y", (2,)), id="one"),
        pytest.param(change(replacement=""), Occurrences("x", ""), id="by nothing"),
        pytest.param(change(type=None), Occurrences("x", "y"), id="without a type"),
        pytest.param(
            {"type": "deletion", "target": "x", "occurrences": [2]},
            Occurrences("x", "", (2,)),
            id="deletion without a replacement",
        ),
        pytest.param(addition(), Occurrences("x", "y", None, insert=True), id="addition"),
        pytest.param(change(target="a\\nb \r\n"), Occurrences("a\\nb \r\n", "y"), id="as written"),
    ],
)
def test_indexed_edit_parses_to(value: Any, op: Op) -> None:
    assert said(response(value)) == [("a.py", op)]


@pytest.mark.parametrize(
    ("value", "op"),
    [
        pytest.param(
            context(searchPattern={"target": "x"}), InContext("", "x", "", "y"), id="alone"
        ),
        pytest.param(
            context(searchPattern=pattern(before=None)), InContext("", "x", "a", "y"), id="null"
        ),
        pytest.param(context(all=True), InContext("b", "x", "a", "y", every=True), id="all"),
        pytest.param(
            {"type": "addition", "searchPattern": {"before": "b", "after": "a"}, "insertion": "y"},
            InContext("b", "", "a", "y"),
            id="addition",
        ),
        pytest.param(paragraph(), InParagraph("contains('p')", "x", "y"), id="paragraph"),
        pytest.param(
            paragraph(maxDistance=50),
            InParagraph("contains('p')", "x", "y", distance=50),
            id="distance",
        ),
        pytest.param(
            paragraph(target=None, sentences=2),
            InParagraph("contains('p')", None, "y", sentences=2),
            id="sentences",
        ),
        pytest.param(
            context(
                type="deletion", replacement=None,
                searchPattern={"paragraph": "contains('p')", "sentences": 1},
            ),
            InParagraph("contains('p')", None, "", sentences=1),
            id="sentences to delete",
        ),
    ],
)  # fmt: skip
def test_contextual_edit_parses_to(value: Any, op: Op) -> None:
    assert said(contexts(value)) == [("a.py", op)]


@pytest.mark.parametrize(
    ("hint", "window"),
    [
        ("approximately line 45-50", (45, 50)),
        ("approximately line 3", (3, 3)),
        ("lines 10 to 12", (10, 12)),
        ("lines 10–12", (10, 12)),
        ("L10:12", (10, 12)),
        ("~7", (7, 7)),
        (7.0, (7, 7)),
        ("near the top", None),
        ("line 12-10", None),
        ("line 0", None),
        ("line 45 of 300", None),
        ("9" * 5000, None),
        (True, None),
        ({"start": 1}, None),
    ],
)
def test_line_hint_is_a_window_or_nothing(hint: Any, window: tuple[int, int] | None) -> None:
    ((_, op),) = said(contexts(context(lineHint=hint)))
    assert isinstance(op, InContext)
    assert op.window == window


# ---------------------------------------------------------------- unreadable


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(change(type="replace"), id="an unknown type"),
        pytest.param(change(target=""), id="an empty target"),
        pytest.param({"type": "modification", "target": "x"}, id="no replacement"),
        pytest.param(change(replacement=1), id="a number as replacement"),
        pytest.param(change(type="deletion"), id="deletion with a replacement"),
        pytest.param(change(insertion="z"), id="modification with an insertion"),
        pytest.param(addition(insertion=None), id="addition of nothing"),
        pytest.param(addition(afterText=None), id="addition nowhere"),
        pytest.param(change(occurrences=[0]), id="occurrence 0"),
        pytest.param(change(occurrences=[1, "2"]), id="a text as occurrence"),
        pytest.param(change(occurrences=[True]), id="a flag as occurrence"),
        pytest.param(change(occurrences="all"), id="all occurrences"),
        pytest.param(change(occurrence=1, occurrences=[2]), id="two statements"),
        pytest.param(change(confidence=95), id="confidence in percent"),
        pytest.param(change(dependsOn=3), id="a number as relation"),
        pytest.param(change(id=["x"]), id="a list as id"),
        pytest.param({"id": "1"}, id="nothing"),
    ],
)
def test_indexed_edit_is_unreadable(value: Any) -> None:
    assert refused(response(change(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(context(searchPattern="x"), id="a pattern that is a text"),
        pytest.param(change(), id="no pattern"),
        pytest.param(context(searchPattern={"before": "b"}), id="no target"),
        pytest.param(context(searchPattern=pattern(regex=True)), id="an unknown part"),
        pytest.param(context(searchPattern=pattern(sentences=1)), id="sentences of no paragraph"),
        pytest.param(context(replacement=None), id="no replacement"),
        pytest.param(context(all="yes"), id="all as a text"),
        pytest.param(context(occurrences=[1]), id="occurrences"),
        pytest.param(
            {"type": "addition", "searchPattern": {}, "insertion": "y"}, id="addition nowhere"
        ),
        pytest.param(paragraph(before="b"), id="paragraph and neighbours"),
        pytest.param(paragraph(target=None), id="paragraph alone"),
        pytest.param(paragraph(paragraph="has('x')"), id="a predicate that cannot be read"),
        pytest.param(paragraph(paragraph=""), id="an empty predicate"),
        pytest.param(paragraph(maxDistance=-1), id="a negative distance"),
    ],
)
def test_contextual_edit_is_unreadable(value: Any) -> None:
    assert refused(contexts(context(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"edits": [change()]}, id="no file"),
        pytest.param(contexts(), id="an empty list"),
        pytest.param(contexts(context(), contextualEdits=context()), id="no list"),
        pytest.param(contexts(context(), edits=[{"from": "x"}]), id="unknown edits as well"),
        pytest.param(change(file="a.py"), id="an indexed edit without its list"),
    ],
)
def test_object_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)
