"""Bytes as lines: nothing is lost, and every way to search finds the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.text import lines as text
from patchq.core.text.lines import Haystack, View, find, runs

LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"a\r", b"\xff", b"\r", b"a a"]), max_size=8)


@given(LINES, LINES.filter(bool))
@pytest.mark.parametrize(("scans", "few"), [(10**6, 10**6), (10**6, 1), (0, 10**6), (0, 1)])
def test_every_search_finds_what_a_naive_one_finds(
    scans: int, few: int, lines: list[bytes], quote: list[bytes]
) -> None:
    expected = [i for i in range(len(lines)) if lines[i : i + len(quote)] == quote]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "SCANS", scans)
        patch.setattr(text, "_FEW", few)
        assert list(View(lines).find(quote)) == expected


LETTERS = st.sampled_from([b"a", b"ab", b"abc"])


def places(hay: bytes, needle: bytes) -> list[int]:
    last = len(hay) - len(needle) + 1
    return [i for i in range(last) if hay[i : i + len(needle)] == needle]


def searched(data: bytes) -> Haystack:
    """One that was searched so often that it has its chunks."""
    haystack = Haystack(data)
    for _ in range(20):
        list(haystack.find(b"something else"))
    return haystack


@given(st.data(), LETTERS)
def test_every_place_is_found(data: st.DataObject, letters: bytes) -> None:
    text = st.lists(st.sampled_from(letters), max_size=60).map(bytes)
    hay, needle = data.draw(text), data.draw(text.filter(bool))
    wanted = places(hay, needle)
    assert list(find(hay, needle)) == wanted
    assert list(runs(hay, needle)) == wanted
    assert list(searched(hay).find(needle)) == wanted


@pytest.mark.parametrize(
    ("hay", "needle", "repeats"),
    [(b"aaa", b"aa", False), (b"aaaa", b"aa", True), (b"ab", b"a", False), (b"aba", b"a", True),
     (b"", b"a", False), (b"aa", b"", False)],
)  # fmt: skip
def test_repeats_counts_what_does_not_overlap(hay: bytes, needle: bytes, repeats: bool) -> None:
    assert Haystack(hay).repeats(needle) is repeats
