"""What two waiting batches are told of each other is what the second one to land would meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from hypothesis import example, given
from hypothesis import strategies as st

from patchq.core.model.values import Entry
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.repository import Repository
from patchq.gate.land.overlaps import Change, overlaps
from patchq.gate.pipeline.lines import carry_lines

LINES = st.sampled_from(["a\n", "b\n", "c\n", "\n", "}\n", "    }\n"])
TEXTS = st.lists(LINES, max_size=12).map("".join)


class Blobs:
    """A repository of one tree with one file, whose blobs have their own texts as ids."""

    def __init__(self, text: str) -> None:
        self.text = text

    def raw(self, blob: str) -> bytes:
        return blob.encode()

    def tree(self, commit: str) -> Blobs:
        return self

    def entry(self, path: str) -> Entry:
        return Entry("file", self.text)


def proposal(id: str, changes: Mapping[str, tuple[str | None, str | None]]) -> Change:
    return Change(id, "main", None, f"commit of {id}", "base", (), changes)


@given(TEXTS, TEXTS, TEXTS)
@example("\n4\n8\n}\n", "\n16\n8\n4\n8\n}\n", "3\n\n4\n9\n8\n}\n")
@example("6\n0\na\n0\n", "6\n8\n3\n0\na\n0\n0\n", "6\n0\na\n0\n15\n")
def test_what_is_pending_is_what_the_moved_base_would_refuse(
    before: str, one: str, other: str
) -> None:
    found = overlaps(
        cast(Repository, Blobs(before)),
        proposal("one", {"a": (before, one)}),
        proposal("other", {"a": (before, other)}),
    )
    old, ours, theirs = (text.encode() for text in (before, one, other))
    _, touches = carry_lines(old, ours, theirs, line_hunks(old, ours), line_hunks(old, theirs))
    meeting = {touch.ours for touch in touches}
    assert {_run(ours.lines) for ours, _ in found} == {_shown(run) for run in meeting}


def _run(lines: tuple[int, int] | None) -> tuple[int, int]:
    assert lines is not None
    return lines


def _shown(run: tuple[int, int]) -> tuple[int, int]:
    """A run of lines as a report counts them: an insertion has the line before it."""
    return (run[0] + 1, run[1]) if run[0] < run[1] else (max(run[0], 1),) * 2
