"""Quotes that leave lines out with `...`."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Replace
from patchq.core.resolve.ladder import Found, Missed, resolve
from patchq.core.resolve.levels import LEVELS, Lines, Quote, elided, match_levels
from patchq.core.resolve.places import placements
from patchq.core.text.lines import Text
from tests.helpers.trees import written

EXACT = next(iter(match_levels(("exact",))))


@pytest.mark.parametrize(
    ("old", "new", "elides"),
    [
        ("a\n...\nb", "a\n...\nc", True),
        ("a\n  ...\nb\n…\nc", "a\n...\nb\n...\nd", True),
        ("a\n...\n\n...\nb", "c\n...\n\n...\nb", True),
        ("a\nb", "a\nb", False),
        ("...\nb", "...\nc", False),
        ("a\n...", "b\n...", False),
        ("a\n...\n...\nb", "a\n...\n...\nc", False),
        ("a\n...\nb", "a", False),
        ("a\n...\nb", "a\n...\nb\n...\nc", False),
        ("a\n...\nb", "\n...\n", False),
        ("a\n....\nb", "c\n....\nb", False),
        ("a\n...\n" * 99 + "b", "a\n...\n" * 99 + "c", False),
    ],
)
def test_elides(old: str, new: str, elides: bool) -> None:
    assert (
        elided(Quote(old.encode().split(b"\n"), new.encode().split(b"\n"))) is not None
    ) == elides


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("a\nm\nb\nz\n", "a\n...\nb\n", "A\n...\nB\n", "A\nm\nB\nz\n"),
        ("a\nb\n", "a\n...\nb\n", "A\n...\nb\n", "A\nb\n"),
        ("  a\n  m\n\n  b\n", "a\n...\n\nb\n", "a\n...\n\nB\n", "  a\n  m\n\n  B\n"),
        ("a\nm\nb\nm\nc\n", "a\n...\nb\n...\nc\n", "a\n...\nB\n...\nc\n", "a\nm\nB\nm\nc\n"),
        ("a\nb\nm\nb\n", "a\n...\nb\n", "A\n...\nb\n", "A\nb\nm\nb\n"),
        ("a\nb\nm\nb\n", "a\n...\nb\n", "a\n...\nB\n", None),
        ("a\nb\nb\nb\n", "a\n...\nb\n", "a\n...\nb\nb\n", "a\nb\nb\nb\nb\n"),
        ("a\n\nm\n\nb\n", "a\n...\n\n...\nb\n", "A\n...\n\n...\nb\n", "A\n\nm\n\nb\n"),
        ("a\n\nm\n\nb\n", "a\n...\n\n...\nb\n", "a\n...\n#\n...\nb\n", None),
        ("  a\n\n  m\n\n  b\n", "a\n...\n\n...\nb\n", "A\n...\n\n...\nb\n",
         "  A\n\n  m\n\n  b\n"),
        ("a\nm\n  a\n  b\n", "a\n...\nb\n", "a\n...\nB\n", "a\nm\n  a\n  B\n"),
        ("a\nb\n  a\n  b\n", "a\n...\nb\n", "a\n...\nB\n", "a\nB\n  a\n  b\n"),
        (" a\n b\n  a\n  b\n", "a\n...\nb\n", "a\n...\nB\n", None),
        ("a\n...\nb\n", "a\n...\nb\n", "a\n...\nB\n", "a\n...\nB\n"),
        ("a\nm\nb", "a\n...\nb\n", "a\n...\nB\n", "a\nm\nB"),
        ("a\r\nm\r\nb\r\n", "a\n...\nb\n", "a\n...\nB\nC\n", "a\r\nm\r\nB\r\nC\r\n"),
    ],
    ids=[
        "lines between", "no lines between", "shifted, with a blank line", "three segments",
        "an unchanged segment at two places", "a changed segment at two places",
        "two places, one result", "a blank segment", "a changed blank segment",
        "a blank segment, shifted",
        "segments shifted alike", "the unshifted chain is an earlier rung", "two shifts",
        "dots of the file", "no final newline", "line ends",
    ],
)  # fmt: skip
def test_chain(before: str, old: str, new: str, after: str | None) -> None:
    assert written(before, (old, new)) == (None if after is None else after.encode())


def test_a_new_half_of_blank_pieces_is_no_chain() -> None:
    assert written("a\nm\nb\n", ("a\n...\nb\n", "\n...\n\n")) is None


PIECES = st.lists(
    st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=2), min_size=2, max_size=3
)


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=9), PIECES, st.data())
def test_a_chain_is_taken_only_if_all_chains_give_its_bytes(
    there: Lines, old: list[Lines], data: st.DataObject
) -> None:
    new = [data.draw(st.sampled_from([segment, [b"X"], [*segment, b"Y"]])) for segment in old]
    results = set()
    for starts in combinations(range(len(there) + 1), len(old)):
        ends = [start + len(segment) for start, segment in zip(starts, old, strict=True)]
        fits = all(there[s:e] == p for s, e, p in zip(starts, ends, old, strict=True))
        if fits and all(e <= s for e, s in zip(ends, starts[1:], strict=False)):
            lines = list(there)
            for s, e, p in reversed(list(zip(starts, ends, new, strict=True))):
                lines[s:e] = p
            results.add(b"".join(line + b"\n" for line in lines))
    before = b"".join(line + b"\n" for line in there)
    halves = ["\n...\n".join(b"\n".join(p).decode() for p in half) + "\n" for half in (old, new)]
    found = resolve(Text(before), Replace(halves[0], halves[1]), LEVELS)
    if isinstance(found, Missed):
        assert found.why == ("ambiguous" if results else "none")
        assert len(results) != 1
    elif not found.already:
        done = before
        for hunk in reversed(found.hunks):
            done = done[: hunk.start] + hunk.new + done[hunk.end :]
        assert results == {done}


def test_pieces_of_one_edit_are_runs_of_their_own() -> None:
    found = resolve(Text(b"a\nm\nb\n"), Replace("a\n...\nb\n", "A\n...\nB\n"), LEVELS)
    assert isinstance(found, Found)
    assert [[hunk.new for hunk in run] for run in found.runs] == [[b"A\n"], [b"B\n"]]


def test_more_ways_than_are_told_apart_are_reported_as_more() -> None:
    text = Text(b"a\n" * 30 + b"b\n" * 30)
    quote = Quote([b"a", b"...", b"b"], [b"x", b"...", b"y"], "elided")
    assert len(placements(text, quote, EXACT)) == 51
