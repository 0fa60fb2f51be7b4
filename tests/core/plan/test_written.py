"""What is known of written lines: no quote that reaches into them is held for one that does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchq.core.model.values import Hunk
from patchq.core.plan.overlay import Overlay
from patchq.core.plan.patches import Footprint

BASE = b"one\n two \nthree\n\nfour"
CUTS = st.lists(st.integers(0, len(BASE)), min_size=2, max_size=6).map(sorted)
NEW = st.sampled_from([b"", b"x", b"x\n", b"\ny", b"n\n\xe2\x80\x9cq\xe2\x80\x9d\n", b"two\n"])


@given(CUTS, st.lists(NEW, min_size=3, max_size=3), st.booleans())
def test_every_line_that_was_written_may_be_held(
    cuts: list[int], news: list[bytes], folds: bool
) -> None:
    overlay = Overlay(BASE)
    for k, (start, end) in enumerate(zip(cuts[::2], cuts[1::2], strict=False)):
        hunk = Hunk(start, end, news[k])
        if folds and k == 1 and start <= (size := len(overlay.text())):
            hunk = Hunk(start, min(end, size), news[k])
            overlay.fold(f"{k}", "a", [hunk], hunk)
        else:
            overlay.add([Footprint(f"{k}", "a", (hunk,))])
    before = set(BASE.split(b"\n"))
    for line in set(overlay.text().split(b"\n")) - before:
        assert overlay.may_hold(line, lines=True)
        assert overlay.may_hold(line, lines=False)


def test_a_line_that_nobody_wrote_is_not_held() -> None:
    overlay = Overlay(BASE)
    assert not overlay.may_hold(b"one", lines=True)
    overlay.add([Footprint("1", "a", (Hunk(4, 10, b"new line\n"),))])
    assert overlay.may_hold(b"new line", lines=True)
    assert not overlay.may_hold(b"three", lines=True)
    assert not overlay.may_hold(b"three", lines=False)
    assert overlay.may_hold(b"w lin", lines=False)
