"""A change that landed and left its target by plain git: it is seen, and tried again at most once.

The edit puts in a line, so that it would fit a second time where it is there already.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.command import block, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

EDIT = block("a.txt", "one\n", "one\nnew\n")
LINES = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository in auto mode, where `x` has landed, and another commit on top."""
    config = "version: 1\nmode: auto\n"
    repo = make_repo(tmp_path / "repo", {"a.txt": LINES, ".patchq.yaml": config})
    patchq("init", cwd=repo)
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{EDIT}")
    commit_files(repo, {"b.txt": "b\n"}, "Another")
    return repo


def reset(repo: Path) -> None:
    git("reset", "-q", "--hard", "main~2", cwd=repo)


def revert(repo: Path) -> None:
    git("revert", "--no-edit", "main~1", cwd=repo)


def revert_twice_again(repo: Path) -> None:
    revert_twice(repo)
    git("revert", "--no-edit", "main", cwd=repo)


@pytest.mark.parametrize("take", [reset, revert, revert_twice_again])
def test_what_was_taken_away_is_seen_and_lands_again_once(
    repo: Path, take: Callable[[Path], None]
) -> None:
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"
    take(repo)
    assert git("show", "main:a.txt", cwd=repo) == LINES.strip()
    if take is reset:
        (found,) = patchq("--json", "fsck", cwd=repo, code=1).json()["damage"]
        assert (found["kind"], found["where"]) == ("commit.gone", "x")
        assert found["cure"] == "patchq retry x"
    shown = patchq("show", "x", cwd=repo).out
    assert shown.startswith("# `x`: reverted")
    assert "The edits are on" not in shown
    assert "patchq retry x" in patchq("revert", "x", cwd=repo, code=2).err
    assert patchq("retry", "x", cwd=repo).out.startswith("applied    x-2 ")
    assert git("show", "main:a.txt", cwd=repo) == LINES.replace("one\n", "one\nnew\n").strip()
    assert report(repo / ".patchq", "x")["state"] == "reverted"
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"
    assert patchq("retry", "x", cwd=repo).out == "duplicate  x-3  of x-2\n"


def revert_twice(repo: Path) -> None:
    for commit in ("main~1", "main"):
        git("revert", "--no-edit", commit, cwd=repo)


def squash(repo: Path) -> None:
    """Squash it with another commit, without its trailers."""
    git("reset", "-q", "--soft", "main~2", cwd=repo)
    git("commit", "-q", "-m", "Both", cwd=repo)


@pytest.mark.parametrize("move", [revert_twice, squash])
def test_what_is_there_still_is_not_tried_again(repo: Path, move: Callable[[Path], None]) -> None:
    move(repo)
    tip = git("rev-parse", "main", cwd=repo)
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"
    assert patchq("show", "x", cwd=repo).out.startswith("# `x`: applied")
    assert "x has landed: it is applied; " in patchq("retry", "x", cwd=repo, code=2).err
    assert git("rev-parse", "main", cwd=repo) == tip
