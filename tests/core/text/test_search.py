"""Every place of a run, whatever it repeats, the first time and the hundredth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.values import Hunk
from patchq.core.text.lines import EditedHaystack, Haystack, find, runs

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


@given(st.data(), LETTERS)
def test_every_place_is_found_in_edited_bytes(data: st.DataObject, letters: bytes) -> None:
    text = st.lists(st.sampled_from(letters), max_size=20).map(bytes)
    base, needle = data.draw(text), data.draw(text.filter(bool))
    borders = sorted(data.draw(st.lists(st.integers(0, len(base)), max_size=8)))
    spans = zip(borders[::2], borders[1::2], strict=False)
    hunks = [Hunk(start, end, data.draw(text)) for start, end in spans]
    hay, behind = b"", 0
    for hunk in hunks:
        hay, behind = hay + base[behind : hunk.start] + hunk.new, hunk.end
    hay += base[behind:]
    found = list(EditedHaystack(hay, Haystack(base), hunks).find(needle))
    assert found == places(hay, needle)


LINES = b"".join(b"    value_%d = compute(%d)\n" % (i, i % 97) for i in range(3000))


@pytest.mark.parametrize(
    "needle",
    [
        LINES[:9], LINES[-11:], LINES[-7:], LINES[4090:4103], LINES[4095:4600], LINES[8185:8200],
        b"compute(5)", b"value_2999 =", b"no such text", LINES[3:], LINES + b"x", b"= c",
    ],
    ids=range(12),
)  # fmt: skip
def test_chunks_hide_nothing(needle: bytes) -> None:
    haystack = searched(LINES)
    assert list(haystack.find(needle)) == list(Haystack(LINES).find(needle))
    wanted, at = [], LINES.find(needle)
    while at >= 0:
        wanted.append(at)
        at = LINES.find(needle, at + 1)
    assert list(haystack.find(needle)) == wanted


@pytest.mark.parametrize(
    ("hay", "needle", "repeats"),
    [(b"aaa", b"aa", False), (b"aaaa", b"aa", True), (b"ab", b"a", False), (b"aba", b"a", True),
     (b"", b"a", False), (b"aa", b"", False)],
)  # fmt: skip
def test_repeats_counts_what_does_not_overlap(hay: bytes, needle: bytes, repeats: bool) -> None:
    assert Haystack(hay).repeats(needle) is repeats
