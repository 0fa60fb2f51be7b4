"""Edits of one file: which stand together, and what they make of it in any order."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.values import Hunk
from patchq.core.plan.edited_text import ChangedRange, EditedText
from patchq.core.text.lines import Text

BASE = b"0123456789"


def made(edited: EditedText) -> bytes:
    return edited.text.restored(edited.data())


def claim(*hunks: tuple[int, int, str], edit: str = "1", format: str = "a") -> ChangedRange:
    return ChangedRange(edit, format, tuple(Hunk(s, e, new.encode()) for s, e, new in hunks))


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [
        (claim((1, 2, "x")), claim((2, 3, "y")), b"0xy3456789"),
        (claim((1, 3, "x")), claim((2, 4, "y")), None),
        (claim((1, 3, "x")), claim((1, 3, "x")), b"0x3456789"),
        (claim((1, 3, "x")), claim((1, 3, "y")), None),
        (claim((2, 4, "x")), claim((2, 2, "y")), b"01yx456789"),
        (claim((2, 4, "x")), claim((4, 4, "y")), b"01xy456789"),
        (claim((2, 4, "x")), claim((3, 3, "y")), None),
        (claim((3, 3, "x")), claim((2, 4, "y")), None),
        (claim((2, 2, "x")), claim((2, 2, "y")), b"01xy23456789"),
        (claim((2, 2, "x")), claim((2, 2, "x")), None),
        (claim((2, 2, "x")), claim((2, 2, "y"), format="b"), None),
        (claim((2, 2, "x")), claim((2, 4, "y"), format="b"), b"01xy456789"),
        (claim((1, 2, "x"), (5, 6, "y")), claim((3, 4, "z")), None),
        (claim((1, 2, "x"), (5, 6, "y")), claim((3, 3, "z")), None),
        (claim((3, 3, "z")), claim((1, 2, "x"), (5, 6, "y")), None),
        (claim((1, 2, "x"), (5, 6, "y")), claim((5, 6, "y"), (8, 9, "z")), b"0x234y67z9"),
        (claim((1, 2, "x"), (5, 6, "y")), claim((5, 6, "q"), (8, 9, "z")), None),
        (claim((1, 2, "x"), (5, 6, "y")), claim((5, 6, "y")), b"0x234y6789"),
        (claim((1, 2, "x"), (4, 4, "i"), (5, 6, "y")), claim((4, 4, "i"), (5, 6, "y"), (8, 9, "")),
         b"0x23i4y679"),
        (claim((1, 2, "x"), (4, 4, "i")), claim((4, 4, "i"), (8, 9, "")), None),
        (claim((1, 2, "x"), (4, 4, "i")), claim((4, 4, "j"), (8, 9, "")), b"0x23ij4567" b"9"),
        (claim((1, 4, "x")), claim((0, 9, "y")), None),
    ],
    ids=[
        "neighbours", "overlap", "the same", "two things for one", "insertion before a replacement",
        "insertion behind a replacement", "insertion inside a replacement",
        "replacement round an insertion", "two insertions keep their order",
        "one insertion or two", "insertions of two formats", "border of another format",
        "between two changes of one edit", "insertion between two changes",
        "two changes round an insertion", "both agree on what they share",
        "they disagree on what they share", "a part of another", "they agree on an insertion too",
        "one insertion or two, at the border", "different insertions at the border", "inside",
    ],
)  # fmt: skip
def test_two_claims(one: ChangedRange, other: ChangedRange, result: bytes | None) -> None:
    edited = EditedText(Text(BASE))
    assert edited.add([one]) is None
    before = made(edited)
    met = edited.add([other])
    assert met == (one if result is None else None)
    assert made(edited) == (before if result is None else result)


def test_runs_of_one_edit_do_not_guard_what_stands_between_them() -> None:
    edited = EditedText(Text(BASE))
    assert edited.add([claim((1, 2, "x")), claim((5, 6, "y"))]) is None
    assert edited.add([claim((3, 4, "z"))]) is None
    assert made(edited) == b"0x2z4y6789"


def test_an_edit_lands_as_a_whole_or_not_at_all() -> None:
    edited = EditedText(Text(BASE))
    edited.add([claim((5, 6, "y"))])
    assert edited.add([claim((1, 2, "x")), claim((5, 7, "z"))]) is not None
    assert made(edited) == b"01234y6789"


def test_what_says_the_same_counts_once() -> None:
    edited = EditedText(Text(BASE))
    hunks = (Hunk(2, 2, b"x"),)
    assert edited.add([ChangedRange("1", "a", hunks, "said")]) is None
    assert edited.add([ChangedRange("2", "b", hunks, "said")]) is None
    assert made(edited) == b"01x23456789"


HUNKS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 3), st.sampled_from(["", "x", "y"])),
    min_size=1,
    max_size=3,
)


@st.composite
def claims(draw: st.DrawFn) -> list[ChangedRange]:
    made = []
    for number in range(draw(st.integers(2, 6))):
        hunks: list[Hunk] = []
        for start, length, new in sorted(draw(HUNKS)):
            end = min(start + length, len(BASE))
            if (not hunks or start > hunks[-1].end) and (new or start < end):
                hunks.append(Hunk(start, end, new.encode()))
        if hunks:
            made.append(ChangedRange(str(number), draw(st.sampled_from("ab")), tuple(hunks)))
    return made


def stand_together(one: ChangedRange, other: ChangedRange) -> bool:
    """The rule, said once more and slowly: outside of what both make alike, no change of one lies
    within or at the very place of the other's."""
    shared = set(one.hunks) & set(other.hunks)
    low, high = max(one.start, other.start), min(one.end, other.end)
    inside_both = low < high or one.start < other.start == other.end < one.end
    inside_both = inside_both or other.start < one.start == one.end < other.end
    if inside_both:
        for hunk in set(one.hunks) ^ set(other.hunks):
            if (hunk.start < high and low < hunk.end) or low <= hunk.start == hunk.end <= high:
                return False
    else:
        shared = set()
    points = [
        {h.start for h in c.hunks if h.start == h.end and h not in shared} for c in (one, other)
    ]
    for point in points[0] & points[1]:
        alike = {h for h in one.hunks if h.start == h.end == point} & set(other.hunks)
        if one.format != other.format or alike:
            return False
    return True


@given(claims())
def test_claims_collide_only_if_two_of_them_do(drawn: list[ChangedRange]) -> None:
    edited = EditedText(Text(BASE))
    stand: list[ChangedRange] = []
    for one in drawn:
        met = edited.add([one])
        if met is not None:
            assert not stand_together(met, one)
        elif not all(stand_together(other, one) for other in stand):
            # An insertion may be meant once or twice, unless a third edit says which.
            assert any(set(one.hunks) <= set(o.hunks) and o.start < o.end for o in stand)
        else:
            stand.append(one)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "x", "yy"])), max_size=4))
def test_disjoint_replacements_commute(drawn: list[tuple[int, str]]) -> None:
    drawn_claims = {start: claim((2 * start, 2 * start + 2, new)) for start, new in drawn}
    results = set()
    for order in permutations(drawn_claims.values()):
        edited = EditedText(Text(BASE))
        assert all(edited.add([one]) is None for one in order)
        results.add(made(edited))
    assert len(results) == 1


# ------------------------------------------------------------ edits on what others wrote


def test_a_fold_tells_whom_it_needs() -> None:
    edited = EditedText(Text(BASE))
    edited.add([claim((1, 2, "abc"), edit="1")])
    edited.add([claim((5, 6, "def"), edit="2")])
    assert made(edited) == b"0abc234def6789"
    assert edited.fold("3", "a", [Hunk(2, 3, b"B")], Hunk(1, 4, b"")) == ("1",)
    assert edited.fold("4", "a", [Hunk(8, 9, b"E")], Hunk(3, 10, b"")) == ("2", "3")
    assert made(edited) == b"0aBc234dEf6789"


def test_a_fold_into_a_gap_needs_who_deleted() -> None:
    edited = EditedText(Text(BASE))
    edited.add([claim((3, 5, ""), edit="1")])
    assert edited.fold("2", "a", [Hunk(3, 3, b"x")], Hunk(2, 4, b"")) == ("1",)
    assert made(edited) == b"012x56789"


@pytest.mark.parametrize(
    ("later", "collides"),
    [(claim((1, 2, "abc")), True), (claim((3, 3, "z")), False), (claim((0, 1, "z")), False)],
)
def test_later_edits_of_the_base_see_a_fold(later: ChangedRange, collides: bool) -> None:
    edited = EditedText(Text(BASE))
    edited.add([claim((1, 2, "abc"))])
    edited.fold("2", "a", [Hunk(1, 4, b"ABC")], Hunk(1, 4, b""))
    assert (edited.add([later]) is not None) == collides


def test_an_edit_said_again_after_it_was_undone_is_a_conflict() -> None:
    edited = EditedText(Text(BASE))
    hunks = (Hunk(1, 2, b"x"),)
    edited.add([ChangedRange("1", "a", hunks, "said")])
    edited.fold("2", "a", [Hunk(1, 2, b"1")], Hunk(1, 2, b""))
    assert edited.add([ChangedRange("3", "a", hunks, "said")]) is not None


def test_an_insertion_is_compared_with_what_became_of_another_at_its_point() -> None:
    edited = EditedText(Text(BASE))
    for edit, hunk in (("1", (3, 3, b"x")), ("2", (3, 4, b"x")), ("3", (3, 5, b"z"))):
        edited.fold(edit, "a", [Hunk(*hunk)], Hunk(*hunk[:2], b""))
    assert made(edited) == b"012z456789"
    assert edited.add([claim((3, 3, "q"), format="b")]) is not None


def test_an_edit_may_change_two_insertions_at_one_point() -> None:
    edited = EditedText(Text(BASE))
    assert edited.add([claim((2, 2, "ab"), edit="1")]) is None
    assert edited.add([claim((2, 2, "cd"), edit="2")]) is None
    edited.fold("3", "a", [Hunk(2, 3, b"A"), Hunk(5, 6, b"D")], Hunk(2, 6, b""))
    edited.fold("4", "a", [Hunk(2, 3, b"B")], Hunk(2, 3, b""))
    assert edited.add([claim((2, 2, "cD"), edit="5")]) is not None
    assert edited.add([claim((2, 2, "ef"), edit="6")]) is None
    assert made(edited) == b"01BbcDef23456789"


def test_of_many_edits_that_are_needed_only_some_are_named() -> None:
    """Those that go unnamed are needed by the ones that are."""
    edited, needs = EditedText(Text(b"\n" * 400)), dict[str, tuple[str, ...]]()
    for number in range(200):
        start = 3 * number  # between what the others wrote
        name = str(number)
        needs[name] = edited.fold(name, "a", [Hunk(start, start, b"x\n")], Hunk(start, start, b""))
        known, more = set[str](), {name}
        while more := {need for edit in more for need in needs[edit]} - known:
            known |= more
        assert known == set(map(str, range(number)))
        assert len(needs[name]) <= 51


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


# ------------------------------------------------------------ what was written

LINES = b"one\n two \nthree\n\nfour"
CUTS = st.lists(st.integers(0, len(LINES)), min_size=2, max_size=6).map(sorted)
NEW = st.sampled_from([b"", b"x", b"x\n", b"\ny", b"n\n\xe2\x80\x9cq\xe2\x80\x9d\n", b"two\n"])


@given(CUTS, st.lists(NEW, min_size=3, max_size=3), st.booleans())
def test_every_line_that_was_written_may_be_held(
    cuts: list[int], news: list[bytes], folds: bool
) -> None:
    edited = EditedText(Text(LINES))
    for k, (start, end) in enumerate(zip(cuts[::2], cuts[1::2], strict=False)):
        hunk = Hunk(start, end, news[k])
        if folds and k == 1 and start <= (size := len(made(edited))):
            hunk = Hunk(start, min(end, size), news[k])
            edited.fold(f"{k}", "a", [hunk], hunk)
        else:
            edited.add([ChangedRange(f"{k}", "a", (hunk,))])
    for line in set(made(edited).split(b"\n")) - set(LINES.split(b"\n")):
        assert edited.may_hold(line)


def test_a_line_that_nobody_wrote_is_not_held() -> None:
    edited = EditedText(Text(LINES))
    edited.add([ChangedRange("1", "a", (Hunk(4, 10, b"new line\n"),))])
    assert edited.may_hold(b"new line")
    assert not edited.may_hold(b"three")
