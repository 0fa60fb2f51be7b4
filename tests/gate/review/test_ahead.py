"""`status --ahead`: what is being written, beside what waits and what others write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gate.review.beside import NUMBERED, TEXT
from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    config = 'version: 1\ntarget: main\nbranches: ["agent/*"]\n'
    repo = make_repo(tmp_path / "repo", {"a.txt": TEXT, ".patchq.yaml": config})
    patchq("init", cwd=repo)
    return repo


def tree(repo: Path, name: str, branch: str = "") -> Path:
    there = repo.parent / name
    how = ["-b", branch] if branch else ["--detach"]
    git("worktree", "add", "-q", *how, str(there), cwd=repo)
    return there


def edited(*lines: int) -> str:
    return "".join(line.upper() if n in lines else line for n, line in enumerate(NUMBERED, 1))


def seen(repo: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What overlaps what: name -> path, lines, kind and name of the other, its lines."""
    told = patchq("--json", "status", "--ahead", cwd=repo).json()["ahead"]
    return {
        Path(work["worktree"]).name if work["worktree"] else work["branch"]: [
            (one["path"], one["lines"], one["with"]["kind"], Path(one["with"]["name"]).name,
             one["with"]["lines"])
            for one in work["overlaps"]
        ]
        for work in told["works"]
    }  # fmt: skip


def test_work_that_overlaps_what_waits_and_what_others_have(repo: Path) -> None:
    patchq("apply", "-", cwd=repo, stdin=block("a.txt", "line 5\n", "five\n"))
    one, two, three = tree(repo, "one", "work/one"), tree(repo, "two"), tree(repo, "three")
    assert seen(repo) == {}
    commit_files(one, {"a.txt": edited(6, 30)})
    (two / "a.txt").write_text(edited(31))
    (two / "new.txt").write_text("two\n")
    (three / "new.txt").write_text("three\n")
    before = git("count-objects", cwd=repo)
    assert seen(repo) == {
        "one": [
            ("a.txt", [6, 6], "waits", "response", [5, 5]),
            ("a.txt", [30, 30], "worktree", "two", [31, 31]),
        ],
        "two": [
            ("a.txt", [31, 31], "worktree", "one", [30, 30]),
            ("new.txt", None, "worktree", "three", None),
        ],
        "three": [("new.txt", None, "worktree", "two", None)],
    }
    assert git("count-objects", cwd=repo) == before
    out = patchq("status", "--ahead", cwd=repo).out
    assert "changes lines 6 of a.txt: proposal response changes lines 5 of a.txt" in out
    assert "creates new.txt: work tree" in out


def test_what_a_branch_proposed_and_what_is_the_same_does_not_count(repo: Path) -> None:
    one, two = tree(repo, "one", "agent/one"), tree(repo, "two", "work/two")
    commit_files(one, {"a.txt": edited(6)})
    commit_files(two, {"a.txt": edited(6)})
    patchq("run", cwd=repo)
    commit_files(one, {"a.txt": edited(6, 7)})
    assert seen(repo) == {
        "one": [("a.txt", [6, 7], "worktree", "two", [6, 6])],
        "two": [("a.txt", [6, 6], "worktree", "one", [6, 7])],
    }
    patchq("accept", "agent-one", cwd=repo)
    (one / "a.txt").write_text(edited(6))
    assert seen(repo)["two"] == []
