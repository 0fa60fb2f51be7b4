"""Edits of one file: which stand together, and what they make of it in any order."""

from __future__ import annotations

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


# ------------------------------------------------------------ edits on what others wrote


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
