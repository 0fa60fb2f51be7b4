"""A repository in auto mode, and a linked work tree beside it where somebody works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command import patchq
from tests.helpers.gitrepo import commit_files, git

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
