"""Diffs: of lines, and as `git apply` takes them."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.core.model.values import FileChange
from patchq.core.text.line_diff import line_diff
from patchq.core.text.unified import unified
from patchq.gate.report.document import size
from tests.helpers.gitrepo import git


def common_lines(a: list[bytes], b: list[bytes]) -> int:
    """How many lines the blocks leave as common; fails if what they leave is not equal."""
    i = j = kept = 0
    for a0, a1, b0, b1 in line_diff(a, b):
        assert a0 < a1 or b0 < b1, "an empty block"
        assert a[i:a0] == b[j:b0]
        assert a0 > i or (i, j) == (0, 0), "two blocks that touch"
        kept += a0 - i
        i, j = a1, b1
    assert a[i:] == b[j:]
    return kept + len(a) - i


def longest(a: list[bytes], b: list[bytes]) -> int:
    """The length of a longest common subsequence, by the textbook."""
    above = [0] * (len(b) + 1)
    for line in a:
        row = [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if line == other else max(row[j], above[j + 1]))
        above = row
    return above[-1]


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"d"]), max_size=25)


@given(LINES, LINES)
def test_small_diffs_are_exact(a: list[bytes], b: list[bytes]) -> None:
    assert common_lines(a, b) == longest(a, b)


def _random_lines(count: int, kinds: int) -> list[bytes]:
    luck = random.Random(count)
    return [b"%d" % luck.randrange(kinds) for _ in range(count)]


def test_unique_lines_hold_a_diff_together_that_is_too_large_to_be_exact() -> None:
    noise = [_random_lines(count, 3) for count in range(1000, 1200, 10)]
    a = [line for i, part in enumerate(noise) for line in (b"section %d" % i, *part)]
    b = [line for i, part in enumerate(noise[::-1]) for line in (b"section %d" % i, *part)]
    assert common_lines(a, b) >= len(noise)


def applied(directory: Path, changes: list[FileChange]) -> dict[str, bytes]:
    """The files that `git apply` leaves when it gets the diff of `changes`."""
    for change in changes:
        path = directory / (change.renamed_from or change.path)
        if change.before is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(change.before)
    patch = unified(changes).encode("utf-8", "surrogateescape")
    if patch:
        git("apply", "--whitespace=nowarn", "-", cwd=directory, stdin=patch)
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


TEXTS = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"\r\n", b"c\rd\n", b"\xff\n", b"-- x\n", b"end"]),
    min_size=1,
    max_size=30,
).map(b"".join)


@settings(max_examples=25)
@given(TEXTS, TEXTS)
def test_git_apply_makes_the_bytes_after(before: bytes, after: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        change = FileChange("dir/file.txt", before, after)
        assert applied(Path(directory), [change]) == {"dir/file.txt": after}


@pytest.mark.parametrize(
    "change",
    [
        FileChange("new.sh", None, b"a\n", executable=True),
        FileChange("new.txt", None, b""),
        FileChange("old.txt", b"a\nb", None),
        FileChange("b.txt", b"a\n", b"a\n", renamed_from="d/a.txt"),
        FileChange("with blank.txt", b"a\n", b"b\n"),
        FileChange("grün/ß.txt", b"a\n", b"b\n"),
        FileChange('q"u\\o\tt\x01e', b"a\n", b"b\n"),
        FileChange("same.txt", b"a\n", b"a\n"),
    ],
)  # fmt: skip
def test_git_apply_understands(tmp_path: Path, change: FileChange) -> None:
    expected = {} if change.after is None else {change.path: change.after}
    assert applied(tmp_path, [change]) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([FileChange("a", b"-- x\n\n\n", b"++ y\n\n\n")], (1, 1, 1)),
        ([FileChange("a", b"@@ -1 +1 @@\n", b" @@ -1 +1 @@")], (1, 1, 1)),
        ([FileChange("a", b"\0", b"\1"), FileChange("b", b"x\n", None)], (2, 0, 1)),
        ([FileChange("b", b"x", b"x", renamed_from="a")], (1, 0, 0)),
        ([FileChange("a", b"x", b"x", True, was_executable=False)], (1, 0, 0)),
        ([FileChange("diff --git a b", b"", b"diff --git \n")], (1, 1, 0)),
    ],
)  # fmt: skip
def test_sizes(changes: list[FileChange], expected: tuple[int, int, int]) -> None:
    counted = size(unified(changes))
    assert counted is not None
    assert (counted.files, counted.added, counted.deleted) == expected
    diff = unified(changes, as_bytes={change.path for change in changes})
    bare = size(diff)
    assert bare is not None
    assert (bare.files, bare.added, bare.deleted) == (len(changes), 0, 0)
