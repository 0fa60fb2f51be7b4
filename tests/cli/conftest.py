"""A repository with a queue, as most verbs need one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import make_repo, operators_file

EDIT = block("a.txt", "two\n", "2\n")
BAD = block("a.txt", "nowhere\n", "x\n")
FILES = {"a.txt": "one\ntwo\n", "lib/b.txt": "b\nx\ny\nz\nc\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with two files; its configuration is the operator's."""
    repo = make_repo(tmp_path / "repo", FILES)
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    return repo


def everything(*roots: Path) -> dict[str, tuple[float, bytes]]:
    """All files below with their times and bytes."""
    files = (path for root in roots for path in root.rglob("*") if not path.is_dir())
    return {
        str(path): (path.lstat().st_mtime_ns, b"" if path.is_symlink() else path.read_bytes())
        for path in files
    }
