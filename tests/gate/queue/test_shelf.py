"""What is found out once and kept, under names that differ."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.shelf import Shelf
from patchq.gate.queue.spool import create, digest


def test_values_are_bounded_and_the_latest_stay(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path, "pass", 10), Shelf(tmp_path, "answer", 10)
    shelf.put("0", b"no store yet")
    assert shelf.get("0") is None
    create(tmp_path)
    with closing(StoreQueue(tmp_path)):
        other.put("29", b"other")
        for number in range(30):
            shelf.put(str(number), b"%d" % number)
        assert [shelf.get(str(number)) for number in (19, 20, 29)] == [None, b"20", b"29"]
        assert other.get("29") == b"other"


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_no_two_lists_share_a_name(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)
