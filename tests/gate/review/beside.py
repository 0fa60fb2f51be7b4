"""Repositories for the tests of review: beside a work tree, and with proposals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config

CONFIG = "version: 1\nmode: auto\ntarget: main\npaths: {review: ['!*']}\n"


def with_work_tree(repo: Path) -> Path:
    """The repository, whose target `main` is checked out, with a queue; the branch `work` is
    checked out in `work` beside it."""
    commit_files(repo, {".patchq.yaml": CONFIG})
    patchq("init", cwd=repo)
    git("worktree", "add", "-q", "-b", "work", str(repo.parent / "work"), cwd=repo)
    return repo


@pytest.fixture
def work(repo: Path) -> Path:
    return repo.parent / "work"


def tree(repo: Path, of: str) -> str:
    return git("rev-parse", f"{of}^{{tree}}", cwd=repo)


NUMBERED = [f"line {number}\n" for number in range(1, 41)]
TEXT = "".join(NUMBERED)


def in_review_mode(place: Path, files: Mapping[str, str]) -> Path:
    """Make a repository whose queue and configuration git does not see."""
    repo = make_repo(place / "repo", files)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    patchq("init", cwd=repo)
    write_config(repo, "version: 1\nmode: review\n")
    return repo


def told(repo: Path, id: str) -> dict[str, Any]:
    return report(repo / ".patchq", id)


def moved(repo: Path, id: str) -> list[dict[str, Any]]:
    return [one for one in told(repo, id)["problems"] if one["code"] == "target.moved"]


def sound(repo: Path, id: str) -> dict[str, Any]:
    """Return the report of a proposal, with which its branch and its mark agree."""
    now = told(repo, id)
    assert now["state"] == "proposed", now["problems"]
    assert now["commit"] == tip(repo, f"patchq/{id}") == tip(repo, f"refs/patchq/waiting/{id}")
    assert now["tree"] == tip(repo, f"patchq/{id}^{{tree}}")
    assert now["branch"] == f"patchq/{id}"
    return now
