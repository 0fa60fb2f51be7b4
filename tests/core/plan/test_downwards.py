"""Edits that go down a file come to the same, made at once or asked all questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.values import Edit, Plan
from patchq.core.plan import batch, downwards
from patchq.core.text.lines import SCANS
from tests.helpers.effort import effort
from tests.helpers.trees import PATH, RULES, DictTree, edits

WORDS = ("a", "b = {}", "  c{}", "d{}", "é{}", "", "# ... existing code {} ...", "e{}\r")
LINES = st.lists(st.sampled_from(WORDS), min_size=4, max_size=14)
ENDS = st.sampled_from(["\n", "\n", "", "\r\n"])
NEW = st.lists(
    st.sampled_from(["x", "y", "z", "a", "b = 1", "c2", "d3", "é", "# ... rest"]), max_size=3
)
SPAN = st.tuples(st.integers(0, 12), st.integers(1, 3), NEW, st.integers(0, 3))


def text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def both(some: Sequence[Edit], before: bytes, *, declared: bool) -> list[Plan]:
    """The plans of edits that are asked all questions, and of those that need not be."""
    plans = []
    for least in (10**6, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(downwards, "SCANS", least)
            tree = DictTree({PATH: before})
            plans.append(batch.plan(some, tree, RULES, declared=declared))
    return plans


@given(LINES, st.lists(SPAN, min_size=1, max_size=5), ENDS, st.booleans(), st.booleans())
def test_any_edits_come_to_the_same(
    words: list[str],
    spans: list[tuple[int, int, list[str], int]],
    end: str,
    declared: bool,
    down: bool,
) -> None:
    lines = [word.format(k) for k, word in enumerate(words)]
    ops = []
    for at, count, new, kept in sorted(spans) if down else spans:
        old = lines[at : at + count]
        ops.append((text(old), text([*old[:kept], *new, *old[kept + 1 :]])))
    some = edits(*(op for op in ops if op[0]))
    asked, quick = both(some, ("\n".join(lines) + end).encode(), declared=declared)
    assert quick == asked


@pytest.mark.parametrize("new", ["x\n", "", "line 1\nx\n", "# ... rest unchanged ...\n", "é\n"])
@pytest.mark.parametrize("order", [1, -1])
def test_edits_that_only_just_touch(new: str, order: int) -> None:
    before = text([f"line {k}" for k in range(9)])
    ops = [("line 1\nline 2\n", new), ("line 3\n", "y\n"), ("line 3\nline 4\n", "line 3\n")]
    asked, quick = both(edits(*ops[::order]), before.encode(), declared=False)
    assert quick == asked


@pytest.mark.parametrize("new", ["x\n", "é\n", "line 1\né\n"])
def test_letters_that_a_file_of_another_encoding_cannot_take(new: str) -> None:
    before = text([f"line {k}" for k in range(9)]).encode() + "café\n".encode("latin-1")
    asked, quick = both(edits(("line 1\n", new), ("line 3\n", "y\n")), before, declared=False)
    assert quick == asked
    codes = [problem.code for problem in quick.problems]
    assert codes == ([] if new.isascii() else ["file.encoding"])


def test_edits_that_go_down_a_file_are_asked_little() -> None:
    """Counted are calls: of the same edits upwards each takes more than twice as many."""
    count = 4 * SCANS
    before = text([f"line number {k}" for k in range(3 * count)]).encode()
    ops = [(f"line number {3 * k}\n", f"changed {k}\n") for k in range(count)]
    tree = DictTree({PATH: before})
    down, up = (effort(partial(batch.plan, edits(*ops[::order]), tree, RULES)) for order in (1, -1))
    assert down < 0.6 * up, (down, up)
