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
        (change(occurrences=[3, 1]), Occurrences("x", "y", (1, 3))),
        (change(occurrences=[1.0, 1]), Occurrences("x", "y", (1,))),
        (change(occurrence=2), Occurrences("x", "y", (2,))),
        (change(replacement=""), Occurrences("x", "")),
        (change(type=None), Occurrences("x", "y")),
        ({"type": "deletion", "target": "x", "occurrences": [2]}, Occurrences("x", "", (2,))),
        (addition(), Occurrences("x", "y", None, insert=True)),
        (change(target="a\\nb \r\n"), Occurrences("a\\nb \r\n", "y")),
    ],
)  # fmt: skip
def test_indexed_edit_parses_to(value: Any, op: Op) -> None:
    assert said(response(value)) == [("a.py", op)]


@pytest.mark.parametrize(
    ("value", "op"),
    [
        (context(searchPattern={"target": "x"}), InContext("", "x", "", "y")),
        (context(searchPattern=pattern(before=None)), InContext("", "x", "a", "y")),
        (context(all=True), InContext("b", "x", "a", "y", every=True)),
        ({"type": "addition", "searchPattern": {"before": "b", "after": "a"}, "insertion": "y"},
            InContext("b", "", "a", "y")),
        (paragraph(), InParagraph("contains('p')", "x", "y")),
        (paragraph(maxDistance=50), InParagraph("contains('p')", "x", "y", distance=50)),
        (paragraph(target=None, sentences=2), InParagraph("contains('p')", None, "y", sentences=2)),
        (context(type="deletion", replacement=None,
                 searchPattern={"paragraph": "contains('p')", "sentences": 1}),
            InParagraph("contains('p')", None, "", sentences=1)),
    ],
)  # fmt: skip
def test_contextual_edit_parses_to(value: Any, op: Op) -> None:
    assert said(contexts(value)) == [("a.py", op)]


@pytest.mark.parametrize(
    ("hint", "window"),
    [
        ("approximately line 45-50", (45, 50)), ("approximately line 3", (3, 3)),
        ("lines 10 to 12", (10, 12)), ("lines 10–12", (10, 12)), ("L10:12", (10, 12)),
        ("~7", (7, 7)), (7.0, (7, 7)), ("near the top", None), ("line 12-10", None),
        ("line 0", None), ("line 45 of 300", None), ("9" * 5000, None), (True, None),
        ({"start": 1}, None),
    ],
)  # fmt: skip
def test_line_hint_is_a_window_or_nothing(hint: Any, window: tuple[int, int] | None) -> None:
    ((_, op),) = said(contexts(context(lineHint=hint)))
    assert isinstance(op, InContext)
    assert op.window == window


# ---------------------------------------------------------------- unreadable


@pytest.mark.parametrize(
    "value",
    [
        change(type="replace"), change(target=""), {"type": "modification", "target": "x"},
        change(replacement=1), change(type="deletion"), change(insertion="z"),
        addition(insertion=None), addition(afterText=None), change(occurrences=[0]),
        change(occurrences=[1, "2"]), change(occurrences=[True]), change(occurrences="all"),
        change(occurrence=1, occurrences=[2]), change(confidence=95), change(dependsOn=3),
        change(id=["x"]), {"id": "1"},
    ],
)  # fmt: skip
def test_indexed_edit_is_unreadable(value: Any) -> None:
    assert refused(response(change(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        context(searchPattern="x"), change(), context(searchPattern={"before": "b"}),
        context(searchPattern=pattern(regex=True)), context(searchPattern=pattern(sentences=1)),
        context(replacement=None), context(all="yes"), context(occurrences=[1]),
        {"type": "addition", "searchPattern": {}, "insertion": "y"}, paragraph(before="b"),
        paragraph(target=None), paragraph(paragraph="has('x')"), paragraph(paragraph=""),
        paragraph(maxDistance=-1),
    ],
)  # fmt: skip
def test_contextual_edit_is_unreadable(value: Any) -> None:
    assert refused(contexts(context(), value)) == (UNREADABLE, 1)


@pytest.mark.parametrize(
    "value",
    [
        {"edits": [change()]}, contexts(), contexts(context(), contextualEdits=context()),
        contexts(context(), edits=[{"from": "x"}]), change(file="a.py"),
    ],
)  # fmt: skip
def test_object_is_unreadable(value: Any) -> None:
    assert refused(value) == (UNREADABLE, 1)
