"""Two readings of a batch: what calls make of a file is what their tools make of it."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, InsertAt, Op, Rename, ReplaceText, Write
from patchq.core.model.values import Edit, Plan
from patchq.core.plan import batch as apply
from tests.helpers.ops import edit
from tests.helpers.trees import PATH, RULES, DictTree, edits, planned, told

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


RENAMES = st.permutations(["a", "b", "c"]).flatmap(
    lambda targets: st.permutations(
        [(name, to) for name, to in zip("abc", targets, strict=True) if name != to]
    )
)


@given(RENAMES)
def test_renames_of_text_are_one_picture(renames: list[tuple[str, str]]) -> None:
    files = {name: f"{name}\n" for name in "abc"}
    ops: list[tuple[str, Op]] = [(name, Rename(to)) for name, to in renames]
    plan = planned(files, edits(*ops))
    assert told(plan) == []
    moved = dict(renames)
    assert {change.path: change.after for change in plan.changes} == {
        to: f"{name}\n".encode() for name, to in moved.items()
    }


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
