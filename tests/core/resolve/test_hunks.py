"""Hunks of diffs and chunks of V4A patches."""

from __future__ import annotations

import random
from itertools import product

import pytest

from patchq.core.model.ops import InsertAt, Op, PatchHunk
from patchq.core.resolve import hunks
from patchq.core.resolve.ladder import Found, Missed, replaced
from patchq.core.text.lines import Text
from tests.helpers.trees import result

TWICE = "class A\n  x\nclass B\n  x\n"


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        # hunk
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class B",)), TWICE[:-2] + "y\n"),
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class A",)), "match.ambiguous"),
        (TWICE, PatchHunk("  x\n", "  y\n", scopes=("class C",)), "match.ambiguous"),
        (TWICE, PatchHunk("  x\n", "  y\n", at_end=True), TWICE[:-2] + "y\n"),  # at the end
        ("a\nb\n", PatchHunk("a\n", "c\n", at_end=True), "match.none"),  # not at the end
        ("a\nb\na\nc\nb\n", PatchHunk("b\n", "x\n", scopes=("a", "c")), "match.ambiguous"),
        ("a\nb\n", PatchHunk("", "x\n", scopes=("a",)), "a\nx\nb\n"),  # added behind the scope
        ("a\nb\n", PatchHunk("", "x\n", at_end=True), "a\nb\nx\n"),  # added at the end
        ("", PatchHunk("", "x\n"), "x\n"),  # added to an empty file
        ("a\nb\n", PatchHunk("", "x\n"), "match.none"),  # added nowhere
        ("a\na\n", PatchHunk("", "x\n", scopes=("a",)), "match.none"),  # an ambiguous scope
        ("a\nx\n", PatchHunk("", "x\n", scopes=("a",)), "already"),  # added already
        ("* a\nb\n", PatchHunk(" * a\nb\n", " * a\nc\n", bare=("* a\nb\n", "* a\nc\n")),
            "* a\nc\n"),  # context as it stands
        ("a\nb", PatchHunk("b\n", "c\n"), "a\nc\n"),  # a newline at the end
        ("a\nb", PatchHunk("b\n", "c\n", final_newline=False), "a\nc"),  # none as before
        ("a\nb\n", PatchHunk("b\n", "c\n", final_newline=False), "a\nc"),  # none any more
        ("a\nb", PatchHunk("a\n", "c\n"), "c\nb"),  # another line changes
        ("a\r\nb", PatchHunk("b\n", "b\nc\n"), "a\r\nb\r\nc\r\n"),  # added behind the last line
        ("a\nc\n", PatchHunk("a\nb\n", "a\nc\n"), "already"),  # already there
        # insert at
        ("a\nb", InsertAt(2, "x\n"), "a\nb\nx"),
        ("a\r\n", InsertAt(0, "x\n\n"), "x\r\n\r\na\r\n"),
        ("a\n", InsertAt(2, "x\n"), "match.none"),
        ("a\nx\n", InsertAt(1, "x\n"), "already"),
    ],
)  # fmt: skip
def test_what_a_hunk_makes(before: str, op: Op, after: str) -> None:
    assert result(before, op) == after


def chunks(dice: random.Random) -> list[PatchHunk]:
    """Chunks of few different lines, most of which write a line of their own."""

    def rows(most: int) -> list[str]:
        return dice.choices("ab", k=dice.randint(0, most))

    made = []
    for n in range(dice.randint(2, 4)):
        lead, gone, tail = rows(1), rows(2), rows(1)
        new = [*lead, *([f"new {n}"] if dice.randint(0, 4) else []), *tail]
        old = [*lead, *gone, *tail]
        if old and old != new:
            made.append(PatchHunk("".join(x + "\n" for x in old), "".join(x + "\n" for x in new)))
    return made


def results_of_all_chains(lines: list[str], ops: list[PatchHunk]) -> set[tuple[str, ...]]:
    """What every chain of places, each change behind the one before, makes of the lines."""
    found: set[tuple[str, ...]] = set()
    halves = [(op.old.splitlines(), op.new.splitlines()) for op in ops]
    spans = []
    for old, new in halves:
        least = min(len(old), len(new))
        lead = next((i for i in range(least) if old[i] != new[i]), least)
        rest = least - lead
        tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
        spans.append((lead, tail))
    places = [[i for i in range(len(lines)) if lines[i : i + len(old)] == old] for old, _ in halves]
    for starts in product(*places):
        last, before, result, copied = 0, -1, list[str](), 0
        for start, (old, new), (lead, tail) in zip(starts, halves, spans, strict=True):
            first, end = start + lead, start + len(old) - tail
            if first < last or start <= before:
                break
            result += [*lines[copied:first], *new[lead : len(new) - tail]]
            last, before, copied = end, start, end
        else:
            found.add((*result, *lines[copied:]))
    return found


def test_hunks_are_certain_where_all_chains_give_the_same() -> None:
    dice, certain, doubtful = random.Random(1), 0, 0
    for _ in range(3000):
        lines, ops = dice.choices("aab", k=dice.randint(1, 9)), chunks(dice)
        text = Text("".join(line + "\n" for line in lines).encode())
        alone = [hunks.resolve(text, [op], ("exact",))[0] for op in ops]
        found = hunks.resolve(text, ops, ("exact",)) if ops else []
        placed = [one for one in found if isinstance(one, Found)]
        if not any(isinstance(one, Missed) and one.why == "ambiguous" for one in alone) or any(
            isinstance(one, Found) and one.already for one in (*alone, *found)
        ):
            continue
        results = results_of_all_chains(lines, ops)
        if len(placed) < len(found):
            assert len(results) != 1, (lines, ops)
            doubtful += 1
            continue
        merged = [hunk for one in placed for hunk in one.hunks]
        after = replaced(text.whole, merged, 0, len(text.whole)).decode().splitlines()
        assert results == {tuple(after)}, (lines, ops)
        certain += 1
    assert min(certain, doubtful) > 50


@pytest.mark.parametrize(
    ("before", "ops", "places"),
    [
        ("f\nx\ny\n", (PatchHunk("f\nx\n", "f\nx\n"), PatchHunk("y\n", "z\n")), [0, 2]),
        ("y\nf\nx\n", (PatchHunk("f\nx\n", "f\nx\n"), PatchHunk("y\n", "z\n")), [1, "unwritable"]),
        ("a\nb\n", (PatchHunk("b\n", "B\n"), PatchHunk("a\n", "A\n")), [1, 0]),
        ("a\nb\n  a\n", (PatchHunk("b\n", "B\n"), PatchHunk("a\n", "A\n")), [1, "ambiguous"]),
        ("a\nb\nA\n", (PatchHunk("b\n", "B\n"), PatchHunk("a\n", "A\n")), [1, "ambiguous"]),
    ],
    ids=["behind the context above it", "before it", "out of order, each with one place",
        "exact before, indented in order", "before, its new text in order"],
)  # fmt: skip
def test_two_chunks(before: str, ops: tuple[PatchHunk, ...], places: list[int | str]) -> None:
    found = hunks.resolve(Text(before.encode()), ops, ("exact", "indentation"))
    assert [one.start if isinstance(one, Found) else one.why for one in found] == places
