"""The hunks that a change is known to have lead to its diff, as if they had been looked for."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from patchq.core.model.values import FileChange, Hunk
from patchq.core.text.line_diff import known_diff, line_diff, whole_lines
from patchq.core.text.lines import split_lines
from patchq.core.text.unified import unified

PIECES = st.sampled_from([b"a\n", b"b\n", b"\n", b"\r\n", b"cd", b"e", b"long line\n", b"\xff\n"])
TEXTS = st.lists(PIECES, max_size=20).map(b"".join)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, bytes, list[Hunk]]:
    """A text, what replacements of some of its bytes make of it, and these."""
    before = draw(TEXTS)
    offsets = st.integers(0, len(before))
    spans = sorted(draw(st.lists(st.tuples(offsets, offsets).map(sorted), max_size=6)))
    hunks: list[Hunk] = []
    for start, end in spans:
        if not hunks or hunks[-1].end <= start:
            hunks.append(Hunk(start, end, draw(TEXTS.map(lambda text: text[:8]))))
    after, position = b"", 0
    for hunk in hunks:
        after += before[position : hunk.start] + hunk.new
        position = hunk.end
    return before, after + before[position:], hunks


@given(edited())
@example((b"a\nb\n", b"a\na\nb\n", [Hunk(0, 0, b"a\n")]))
@example((b"p\nq\ng\n", b"g\np\nq\n", [Hunk(0, 4, b""), Hunk(6, 6, b"p\nq\n")]))
@example((b"a\nb\na\nc\n", b"b\na\nc\na\n", [Hunk(0, 2, b""), Hunk(8, 8, b"a\n")]))
def test_the_diff_of_known_hunks_is_the_diff_of_the_texts(
    change: tuple[bytes, bytes, list[Hunk]],
) -> None:
    before, after, hunks = change
    lines = whole_lines(before, after, hunks)
    a, b = split_lines(before), split_lines(after)
    assert known_diff(a, b, lines) == line_diff(a, b)
    assert unified([FileChange("a", before, after, hunks=lines)]) == unified(
        [FileChange("a", before, after)]
    )
