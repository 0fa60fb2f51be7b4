"""A change that landed and left its target by plain git: it is seen, and tried again at most once.

The edit puts in a line, so that it would fit a second time where it is there already.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command import block, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

EDIT = block("a.txt", "one\n", "one\nnew\n")
LINES = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    config = "version: 1\nmode: auto\n"
    repo = make_repo(tmp_path / "repo", {"a.txt": LINES, ".patchq.yaml": config})
    patchq("init", cwd=repo)
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: x\n---\n{EDIT}")
    commit_files(repo, {"b.txt": "b\n"}, "Another")
    return repo


RESET, REVERT = ["reset -q --hard main~2"], ["revert --no-edit main~1"]
REVERT_TWICE = [*REVERT, "revert --no-edit main"]
SQUASH = ["reset -q --soft main~2", "commit -q -m Both"]  # with another, without its trailers


def do(repo: Path, steps: list[str]) -> None:
    for step in steps:
        git(*step.split(), cwd=repo)


@pytest.mark.parametrize("steps", [RESET, REVERT, [*REVERT_TWICE, "revert --no-edit main"]])
def test_what_was_taken_away_is_seen_and_lands_again_once(repo: Path, steps: list[str]) -> None:
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"
    do(repo, steps)
    assert git("show", "main:a.txt", cwd=repo) == LINES.strip()
    if steps is RESET:
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


@pytest.mark.parametrize("steps", [REVERT_TWICE, SQUASH])
def test_what_is_there_still_is_not_tried_again(repo: Path, steps: list[str]) -> None:
    do(repo, steps)
    tip = git("rev-parse", "main", cwd=repo)
    assert patchq("fsck", cwd=repo).out == "queue and repository agree\n"
    assert patchq("show", "x", cwd=repo).out.startswith("# `x`: applied")
    assert "x has landed: it is applied; " in patchq("retry", "x", cwd=repo, code=2).err
    assert git("rev-parse", "main", cwd=repo) == tip
