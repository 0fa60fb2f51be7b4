"""A batch becomes a plan: order, dependence, overlap, and what happens to whole files."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from patchq.core.model.ops import Create, DeleteFile, Op, Rename, Replace
from patchq.core.model.values import Hunk, Plan
from patchq.core.plan.edited_text import EditedText
from patchq.core.text.lines import Text
from tests.helpers.trees import edits, planned, told, written


def states(plan: Plan) -> list[str]:
    return [edit.state for edit in plan.edits]


def test_an_edit_that_needs_an_earlier_one_says_so() -> None:
    plan = planned("a\nb\n", edits(("b\n", "b\nnew\n"), ("new\n", "newer\n")))
    assert plan.changes[0].after == b"a\nb\nnewer\n"
    assert [edit.needs for edit in plan.edits] == [(), ("1",)]
    assert [edit.lines for edit in plan.edits] == [(2, 2), None]


@pytest.mark.parametrize(
    ("before", "ops", "after"),
    [
        ("a\nb\n", [("a\n", "x\n"), ("a\nb\n", "a\ny\nb\n")], "x\ny\nb\n"),
        ("a\nb\n", [("a\n", "x\n"), ("b\n", "y\nb\n")], "x\ny\nb\n"),
        ("a\nb", [("a\n", "x\n"), ("b\n", "")], "x"),
        ("a\nb", [("b\n", "b\nc\n"), ("a\n", "")], "b\nc"),
        ("a\nb\n", [("a\n", "a\n1\n"), ("b\n", "2\nb\n")], "a\n1\n2\nb\n"),
        ("a\nb\nc\nd\n", [("a\nb\nc\n", "a\nB\nc\n"), ("B\nc\nd\n", "B\nc\nD\n")], "a\nB\nc\nD\n"),
        ("a\nb\nc\n", [("a\nb\nc\n", "A\nb\nC\n"), ("b\n", "B\n")], None),
        ("a\nb\nc\n", [("a\nb\nc\n", "A\nB\nc\n"), ("a\nb\nc\n", "A\nB\nC\n")], None),
        ("a\nb\nc\n", [("a\n...\nc\n", "A\n...\nC\n"), ("b\n", "B\n")], "A\nB\nC\n"),
        ("a\nb\n", [("a\n", "b\n"), ("b\n", "c\n")], "b\nc\n"),
        ("a\n", [("a\n", "b\n"), ("b\n", "a\n"), ("a\n", "b\n")], None),
        ("a\n", [("a\n", "x\n"), ("x\n", "y\n"), ("a\n", "a\nz\n")], "y\nz\n"),
        ("a\nb\n", [("b\n", "B\n"), ("a\n", "a\n1\n")], "a\n1\nB\n"),
        ("a\nb\nc\nd\n", [("a\nb\nc\nd\n", "A\nb\nc\nD\n"), ("b\n", "b\n1\n")], None),
        ("a\nb\n", [("a\nb\n", "A\nB\n"), ("a\n", "a\n1\n")], None),
        ("a\nb\n", [("a\n", "a\n1\n"), ("a\nb\n", "A\nB\n")], None),
        ("a\nb\n", [("a\n", "a\n1\n"), ("b\n", "1\nb\n")], None),
        ("a\nb\nc\n", [("a\nb\nc\n", "A\nb\nC\n"), ("c\n", "C\n")], "A\nb\nC\n"),
    ],
    ids=[
        "insertion behind a replaced line", "insertion before the next line", "the last line goes",
        "behind the last line", "two insertions at one point", "a quote of what another wrote",
        "between two changes", "one goes on where the other ends", "in what is left out",
        "each finds the base", "there and back and there", "the border of a folded edit",
        "insertion before a replaced line", "insertion between two changes",
        "an insertion inside", "round an insertion", "one insertion or two", "a part of another",
    ],
)  # fmt: skip
def test_borders(before: str, ops: list[tuple[str, str]], after: str | None) -> None:
    result = written(before, *ops)
    assert result == (None if after is None else after.encode())


def test_overlap_names_both_edits_and_their_lines() -> None:
    (problem,) = planned("a\nb\nc\n", edits(("a\nb\n", "x\n"), ("b\nc\n", "y\n"))).problems
    assert problem.code == "conflict.overlap"
    assert problem.conflicts_with is not None
    assert (problem.edit, problem.conflicts_with.edit) == ("2", "1")
    assert (problem.line, problem.conflicts_with.lines) == (2, (1, 2))


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ("a\nb\n", ("a\n", "A\n"), "A\nb\n"),
        ("a\nb\n", ("a\n", "a\nx\n"), "a\nx\nb\n"),
        ("a\nb\nc\n", ("a\n...\nc\n", "A\n...\nC\n"), "A\nb\nC\n"),
    ],
)
@pytest.mark.parametrize("format", ["search_replace", "diff"])
def test_identical_edits_count_once(
    format: str, before: str, op: tuple[str, str], after: str
) -> None:
    one, other = edits(op, op)
    plan = planned(before, [one, replace(other, format=format)])
    assert states(plan) == ["applied", "applied"]
    assert [edit.format for edit in plan.edits] == ["search_replace", format]
    assert plan.changes[0].after == after.encode()


def test_an_assertion_must_hold() -> None:
    good, bad = ("a\n", "a\n"), ("c\n", "c\n")
    change = ("b\n", "B\n")
    assert written("a\nb\n", good, change) == b"a\nB\n"
    assert told(planned("a\nb\n", edits(bad, change))) == ["match.none"]


@pytest.mark.parametrize(
    ("ops", "codes"),
    [
        ([("b", Rename("c")), ("a", Rename("b"))], ["conflict.overlap"]),
        ([("a", Rename("b")), ("a", Rename("c"))], ["conflict.overlap"]),
        ([("a", Rename("b")), ("x", Rename("b"))], ["conflict.overlap"]),
        ([("a", Rename("x"))], ["path.exists"]), ([("a", Rename("a"))], ["path.exists"]),
        ([("a", Rename("b")), ("b", Create("2\n"))], ["conflict.overlap"]),
        ([("b", Create("2\n")), ("a", Rename("b"))], ["conflict.overlap"]),
        ([("a", DeleteFile()), ("a", Replace("1\n", "2\n"))], ["conflict.overlap"]),
        ([("a", DeleteFile()), ("a", Rename("b"))], ["conflict.overlap"]),
        ([("a", Rename("b")), ("b", DeleteFile())], ["conflict.overlap"]),
        ([("n", Create("1\n")), ("n", DeleteFile())], ["conflict.overlap"]),
        ([("n", Create("1\n")), ("n", Create("2\n"))], ["conflict.overlap"]),
        ([("n", Create("1\n")), ("N", Create("2\n"))], ["path.exists"]),
        ([("n", Create("1\n")), ("n/m", Create("2\n"))], ["path.not_a_file"]),
        ([("n/m", Create("1\n")), ("n", Create("2\n"))], ["path.not_a_file"]),
        ([("n/m", Create("1\n")), ("N/o", Create("2\n"))], ["path.exists"]),
        ([("n/m", Create("1\n")), ("a", Rename("n"))], ["path.not_a_file"]),
        ([("x", Replace("3\n", "4\n")), ("a", Rename("x"))], ["path.exists"]),
    ],
)  # fmt: skip
def test_files_that_collide(ops: list[tuple[str, Op]], codes: list[str]) -> None:
    plan = planned({"a": "1\n", "x": "3\n"}, edits(*ops))
    assert told(plan) == codes
    assert plan.changes == ()


def test_a_created_file_is_unescaped_if_an_edit_had_to_be() -> None:
    create: tuple[str, Op] = ("n.py", Create('import os\\n\\nprint(\\"a\\")\\n\n'))
    escaped: tuple[str, Op] = ("a.py", Replace('say(\\"a\\")\n', 'say(\\"b\\")\n'))
    for batch in ([create, escaped], [escaped, create]):
        plan = planned({"a.py": 'say("a")\n'}, edits(*batch))
        assert {c.path: c.after for c in plan.changes} == {
            "a.py": b'say("b")\n',
            "n.py": b'import os\n\nprint("a")\n',
        }
    assert told(planned({}, edits(create))) == ["response.unreadable_edit"]


WORDS = ("alpha", "beta", "gamma", "delta", "return x", 'say("it\'s")', "}", "x = [1, 2]", "")
INDENTS = ("", "    ", "\t", "        ")


@st.composite
def files(draw: st.DrawFn) -> list[str]:
    """Lines, every second of which is unlike all others."""
    count = draw(st.integers(4, 24))
    rng = Random(draw(st.integers(0, 10**6)))
    words = [f"line_{i} = " * (i % 2) + rng.choice(WORDS) for i in range(count)]
    return [rng.choice(INDENTS) + word.rstrip() for word in words]


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, str, str, bytes]:
    """A file, an edit of some of its lines as the two halves, and the file after it."""
    lines = draw(files())
    start = draw(st.integers(0, len(lines) - 3))
    end = draw(st.integers(start + 2, min(start + 7, len(lines))))
    assume(any(line.strip() for line in lines[start:end]))
    new = list(lines[start:end])
    at = draw(st.integers(0, len(new) - 1))
    indent = new[at][: len(new[at]) - len(new[at].lstrip())]
    fresh = [f"{indent}fresh_{k}" for k in range(draw(st.integers(1, 2)))]
    new[at : at + draw(st.integers(0, 1))] = fresh
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    final = draw(st.booleans())

    def data(of: list[str]) -> bytes:
        text = "".join(line + line_end for line in of)
        return (text if final or not of[-1] else text.removesuffix(line_end)).encode()

    assume(lines[-1])
    old = "".join(line + "\n" for line in lines[start:end])
    after = lines[:start] + new + lines[end:]
    assume(after[-1])
    return data(lines), old, "".join(line + "\n" for line in new), data(after)


@given(cases())
def test_bytes_outside_of_the_quote_never_change(case: tuple[bytes, str, str, bytes]) -> None:
    before, old, new, _ = case
    plan = planned(before, edits((old, new)))
    if plan.changes:
        lines, span = Text(before), plan.edits[0].lines
        assert span is not None
        head, tail = lines.starts[span[0] - 1], len(lines.whole) - lines.starts[span[1]]
        after = plan.changes[0].after
        assert after is not None
        whole = after if len(lines.whole) == len(before) else after + lines.line_end
        assert whole[:head] == before[:head]
        assert whole[len(whole) - tail :] == lines.whole[len(lines.whole) - tail :]


@given(files(), st.data())
def test_disjoint_edits_commute(lines: list[str], data: st.DataObject) -> None:
    before = "".join(line + "\n" for line in lines)
    ops: list[tuple[str, str]] = []
    at = 0
    while at < len(lines) - 2:
        old = lines[at : at + 2]
        new = [f"new_{at}"] if data.draw(st.booleans()) else [old[0], f"new_{at}", old[1]]
        ops.append(("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new)))
        at += data.draw(st.integers(2, 4))
    order = data.draw(st.permutations(ops))
    assert written(before, *ops) == written(before, *order)


SLIPS = ("trailing", "dedent", "indent", "blank", "curly", "numbers", "elide", "escape", "crlf")


def damaged(old: list[str], new: list[str], slip: str, rng: Random) -> tuple[list[str], list[str]]:
    """The halves as a model may have written them; what they share is damaged alike."""

    def both(change: dict[str, str]) -> tuple[list[str], list[str]]:
        return [change.get(x, x) for x in old], [change.get(x, x) for x in new]

    match slip:
        case "trailing":
            return both({x: x + rng.choice(["", " ", "\t"]) for x in old})
        case "curly":
            return both({x: x.replace('"', "“").replace("'", "’") for x in old})
        case "indent":
            return ["  " + x if x.strip() else x for x in old], [
                "  " + x if x.strip() else x for x in new
            ]
        case "dedent":
            told = [x for x in (*old, *new) if x.strip()]
            indent = next((i for i in INDENTS[::-1] if all(x.startswith(i) for x in told)), "")
            return [x.removeprefix(indent) for x in old], [x.removeprefix(indent) for x in new]
        case "blank":
            return ["", *old], ["", *new]
        case "numbers":
            return [f"{n} | {x}" for n, x in enumerate(old, 7)], [
                f"{n} | {x}" for n, x in enumerate(new, 7)
            ]
        case "elide":
            keep = [k for k in range(1, len(old) - 1) if old[: k + 1] == new[: k + 1]]
            k = keep[-1] if keep else 0
            if k and k + 1 < len(old):
                return [*old[:k], "...", *old[k + 1 :]], [*new[:k], "...", *new[k + 1 :]]
            return old, new
        case "escape":
            return [x.replace('"', '\\"') for x in old], [x.replace('"', '\\"') for x in new]
        case _:
            return [x + "\r" for x in old], [x + "\r" for x in new]


@given(
    cases(),
    st.lists(st.sampled_from(SLIPS), min_size=1, max_size=3, unique=True),
    st.integers(0, 10**6),
)
def test_a_damaged_quote_gives_the_exact_result_or_a_refusal(
    case: tuple[bytes, str, str, bytes], slips: list[str], seed: int
) -> None:
    before, old, new, _ = case
    undamaged = written(before, (old, new))
    assume(undamaged is not None)
    halves = old.split("\n")[:-1], new.split("\n")[:-1]
    for slip in slips:
        halves = damaged(*halves, slip, Random(seed))
    quote = tuple("".join(line + "\n" for line in half) for half in halves)
    result = written(before, (quote[0], quote[1]))
    assert result in (undamaged, None)


BASE = b"0123456789"


def made(edited: EditedText) -> bytes:
    return edited.text.restored(edited.data())


@pytest.mark.parametrize("base", [BASE, b"0\n1\n2\n\n4\n"])
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 4), st.sampled_from(["", "x", "yz", "\n"])),
        max_size=6,
    )
)
def test_folding_is_editing_the_text_as_it_stands(
    base: bytes, drawn: list[tuple[int, int, str]]
) -> None:
    edited, text = EditedText(Text(base)), base
    for number, (start, length, new) in enumerate(drawn):
        start = min(start, len(text))
        end = min(start + length, len(text))
        text = text[:start] + new.encode() + text[end:]
        edited.fold(str(number), "a", [Hunk(start, end, new.encode())], Hunk(start, end, b""))
        assert made(edited) == text
