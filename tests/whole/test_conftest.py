"""The tests' own ground: nothing of the user's configuration gets in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import gitrepo
from tests.helpers.gitrepo import git, make_repo


def test_libgit2_makes_the_repository_that_git_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the samples of hooks, and the draft of the message."""

    def shown(repo: Path) -> list[str]:
        commands = (
            "cat-file -p HEAD", "ls-files --stage", "status --porcelain", "symbolic-ref HEAD",
            "reflog --format=%gs main", "fsck --strict", "config --local --list",
        )  # fmt: skip
        commit, *said, config = (git(*words.split(), cwd=repo) for words in commands)
        return [re.sub(r"> \d+", ">", commit), *said, *sorted(config.split())]

    files: dict[str, bytes | str] = {
        "b.txt": "b\n",
        "x/a.py": "a\r\n",
        "x/\u00e9 \udcff": b"\0\xff",
    }
    with monkeypatch.context() as patch:
        patch.setattr(gitrepo, "git", lambda *_, **__: pytest.fail("git was started"))
        own = make_repo(tmp_path / "own", files)
    with monkeypatch.context() as patch:
        patch.setattr(gitrepo, "_is_plain", lambda *_: False)
        assert shown(own) == shown(make_repo(tmp_path / "git", files))
