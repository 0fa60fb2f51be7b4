"""Changes carried from an old text to a new one, against git's own merge of the same texts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.gate.git.merges import line_hunks
from patchq.gate.pipeline.lines import Touch, carry_lines


def carried(before: bytes, after: bytes, now: bytes) -> tuple[bytes, tuple[Touch, ...]]:
    return carry_lines(before, after, now, line_hunks(before, after), line_hunks(before, now))


LINE = st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"}\n"])


@st.composite
def variants(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A text and two that were made of it by a few changes each."""
    base = draw(st.lists(LINE, min_size=1, max_size=14))

    def variant() -> bytes:
        lines = list(base)
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(lines)))
            lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(LINE, max_size=2))
        return b"".join(lines)

    return b"".join(base), variant(), variant()


@given(variants())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_where_nothing_meets_git_merges_to_nothing_else(
    tmp_path: Path, texts: tuple[bytes, bytes, bytes]
) -> None:
    """Repeated lines can be aligned in several ways, and git may then see a conflict."""
    before, after, now = texts
    text, touches = carried(before, after, now)
    if touches:
        return
    for name, data in (("now", now), ("before", before), ("after", after)):
        (tmp_path / name).write_bytes(data)
    words = ["git", "merge-file", "-p", "now", "before", "after"]
    merged = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60)
    assert merged.returncode or merged.stdout == text
