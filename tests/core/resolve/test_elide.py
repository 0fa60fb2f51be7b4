"""Quotes that leave lines out with `...`."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.ops import Replace
from patchq.core.resolve.ladder import Missed, resolve
from patchq.core.resolve.levels import LEVELS, Lines, Quote, elided
from patchq.core.text.lines import Text


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
