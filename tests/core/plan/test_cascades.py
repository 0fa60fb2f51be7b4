"""Which edits of a batch count, and in which of its two readings."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, InsertAt, Op, Rename, ReplaceText, Write
from patchq.core.model.values import Edit, Plan
from patchq.core.plan import batch as apply
from tests.helpers.trees import PATH, RULES, DictTree, edit, edits, planned, told


def states(done: Plan) -> list[str]:
    return [outcome.state for outcome in done.edits]


def after(done: Plan) -> bytes | None:
    return next((change.after for change in done.changes), None)


def says(old: str, new: str, id: str, **said: object) -> Edit:
    return replace(edit(ReplaceText(old, new), id, "indexed"), **said)


@pytest.mark.parametrize(
    ("stated", "state"), [(None, "applied"), (0.7, "applied"), (0.69, "skipped"), (0.0, "skipped")]
)
def test_an_edit_below_the_threshold_is_left_out(stated: float | None, state: str) -> None:
    done = planned("a b\n", [says("a", "x", "1", confidence=stated), says("b", "y", "2")])
    assert states(done) == [state, "applied"]
    assert told(done) == (["edit.confidence"] if state == "skipped" else [])


def test_a_dependent_edit_is_cancelled_by_an_applied_one() -> None:
    done = planned("a b\n", [says("b", "y", "2", depends_on=("1",)), says("a", "x", "1")])
    assert states(done) == ["cancelled", "applied"]
    assert done.edits[0].cancelled_by == "1"
    assert after(done) == b"x b\n"


def test_a_chain_of_thousands_is_decided() -> None:
    text = "".join(f"line {i}\n" for i in range(3000))
    edits = [says(f"line {i}\n", f"l {i}\n", str(i), depends_on=(str(i + 1),)) for i in range(3000)]
    done = planned(text, edits)
    assert states(done) == ["cancelled", "applied"] * 1500


def backup(target: str, new: str, id: str, of: str | None) -> Edit:
    return replace(edit(ReplaceText(target, new), id, "contextual"), fallback_of=of)


@pytest.mark.parametrize(
    ("indexed", "expected", "written"),
    [
        (says("a", "x", "1"), ["applied", "skipped"], b"x b\n"),  # the edit has its place
        (says("z", "x", "1"), ["skipped", "applied"], b"a y\n"),  # it has none
        (says("a", "x", "1", confidence=0.1), ["skipped", "applied"], b"a y\n"),  # it is doubtful
    ],
)  # fmt: skip
def test_a_backup_of_the_same_id(indexed: Edit, expected: list[str], written: bytes) -> None:
    done = planned("a b\n", [indexed, backup("b", "y", "1", "1")])
    assert not done.refused
    assert states(done) == expected
    assert after(done) == written


BOTH_ORDERS = pytest.mark.parametrize("order", [1, -1], ids=["behind it", "before it"])


@BOTH_ORDERS
@pytest.mark.parametrize(
    "other",
    [
        ReplaceText("a", "x", after=" b"),  # of the same characters
        ReplaceText("a b\n", "x b\n"),  # of the line
    ],
)  # fmt: skip
def test_a_contextual_edit_of_the_same_span_and_result_is_a_backup(
    order: int, other: ReplaceText
) -> None:
    twin = edit(ReplaceText("a", "x", at=(1,)), "1", "indexed")
    backed = edit(other, "2", "contextual")
    apart = edit(ReplaceText("c", "y"), "3", "contextual")
    done = planned("a b\nc\n", [twin, backed, apart][::order])
    assert states(done)[::order] == ["applied", "skipped", "applied"]
    assert done.edits[1].cancelled_by == "1"
    assert after(done) == b"x b\ny\n"


@BOTH_ORDERS
@pytest.mark.parametrize(
    "other",
    [
        ReplaceText("a b", "x y"),
        ReplaceText("a", "", after=" b"),
    ],
    ids=["more than that", "nothing"],
)
def test_another_intent_that_overlaps_is_a_conflict(order: int, other: ReplaceText) -> None:
    twin = edit(ReplaceText("a", "x", at=(1,)), "1", "indexed")
    assert told(planned("a b\n", [twin, edit(other, "2", "contextual")][::order])) == [
        "conflict.overlap"
    ]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d = 1", "e()"]), min_size=1, max_size=3)
TEXTS = WORDS.map(lambda words: "".join(f"{word}\n" for word in words))


def called(calls: list[tuple[str, str]]) -> list[Edit]:
    return [
        replace(edit(ReplaceText(old, new), str(number)), called=True)
        for number, (old, new) in enumerate(calls, 1)
    ]


def tools(text: str, calls: list[tuple[str, str]]) -> str | None:
    """What a tool makes of the text that replaces what stands once, call by call; None if it
    fails."""
    for number, (old, new) in enumerate(calls):
        if (old, new) in calls[:number]:
            continue
        places = [at for at in range(len(text)) if text.startswith(old, at)]
        if len(places) != 1 or old == new:
            return None
        text = text[: places[0]] + new + text[places[0] + len(old) :]
    return text


def result(plan: Plan, before: str) -> str | None:
    if plan.refused:
        return None
    after = plan.changes[0].after if plan.changes else before.encode()
    assert after is not None
    return after.decode()


@given(st.lists(TEXTS, min_size=2, max_size=5), st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_calls_give_what_their_tools_give(parts: list[str], calls: list[tuple[str, str]]) -> None:
    before = "".join(f"line {i}\n{part}" for i, part in enumerate(parts))
    wanted = tools(before, calls)
    plan = apply.plan(called(calls), DictTree({PATH: before}), RULES)
    if wanted is None or any(outcome.state == "already_applied" for outcome in plan.edits):
        return
    assert result(plan, before) in (wanted, None)


def test_what_is_done_to_whole_files_in_text_has_no_order() -> None:
    ops: list[tuple[str, Op]] = [
        ("a", DeleteFile()), ("a", Create("1\n2\nnew\n")), ("b", Rename("c")), ("x", Rename("b")),
    ]  # fmt: skip
    files = {"a": "1\n2\n3\n", "b": "b\n", "x": "x\n"}
    results = {
        frozenset((change.path, change.after) for change in planned(files, edits(*order)).changes)
        for order in permutations(ops)
    }
    assert results == {
        frozenset({("a", b"1\n2\nnew\n"), ("b", b"x\n"), ("c", b"b\n"), ("x", None)})
    }


NAMES = st.sampled_from(["a", "b", "c", "d/e", "a/x"])
SHORT = st.lists(st.sampled_from(["1\n", "2\n", "3\n"]), min_size=1, max_size=3).map("".join)
DEEDS = st.one_of(
    st.builds(Create, SHORT),
    st.builds(Write, SHORT, st.booleans()),
    st.builds(DeleteFile, st.none() | SHORT),
    st.builds(Rename, NAMES),
    st.builds(ReplaceText, SHORT, SHORT),
    st.builds(InsertAt, st.integers(0, 2), SHORT),
)


@given(
    st.dictionaries(st.sampled_from("abc"), SHORT),
    st.lists(st.tuples(NAMES, DEEDS), min_size=1, max_size=5),
    st.booleans(),
)
def test_whatever_is_done_to_files_each_path_changes_once(
    files: dict[str, str], ops: list[tuple[str, Op]], calls: bool
) -> None:
    batch = [replace(one, called=calls) for one in edits(*ops)]
    plan = planned(files, batch)
    paths = [change.path for change in plan.changes]
    assert len(set(paths)) == len(paths)
    for change in plan.changes:
        source = files.get(change.renamed_from or change.path)
        assert change.before == (None if source is None else source.encode())
        assert change.renamed_from is None or change.path not in files
        assert change.renamed_from not in paths
    assert plan.refused or "failed" not in {outcome.state for outcome in plan.edits}
