"""Small files by digests, a bounded number of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.queue.spool import Shelf, digest


@pytest.mark.parametrize("rest", [5, 10])
def test_files_are_bounded_and_the_latest_stay(tmp_path: Path, rest: int) -> None:
    shelf = Shelf(tmp_path / "shelf", most=10, rest=rest)
    assert shelf.get(digest("tree", "hook")) is None
    for number in range(30):
        shelf.put(digest("tree", str(number)), b"%d" % number)
        assert len(os.listdir(shelf.root)) <= 10
        os.utime(shelf.root / digest("tree", str(number)), (number, number))
    assert shelf.get(digest("tree", "29")) == b"29"
    assert shelf.get(digest("tree", "1")) is None
    assert shelf.get(digest("tree2", "29")) is None


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_no_two_lists_share_a_name(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)
