"""The tests' own ground: nothing of the user's configuration gets in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pygit2
import pytest

from tests.helpers import gitrepo
from tests.helpers.gitrepo import git, make_repo


def test_git_reads_only_the_tests_own_configuration(tmp_path: Path, home: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    origins = git("config", "--list", "--show-origin", "--name-only", cwd=repo)
    files = {line.split("\t")[0] for line in origins.splitlines()}
    assert files == {f"file:{home}/.gitconfig", "file:.git/config"}
    assert git("log", "--format=%an <%ae> %D", cwd=repo) == (
        "Ada Tester <ada@example.org> HEAD -> main"
    )


def test_libgit2_reads_the_same_identity(tmp_path: Path) -> None:
    repo = pygit2.Repository(str(make_repo(tmp_path / "repo")))
    assert repo.default_signature.email == "ada@example.org"


def test_processes_inherit_the_home(home: Path) -> None:
    shown = subprocess.run(["sh", "-c", 'printf %s "$HOME"'], capture_output=True, check=True)
    assert shown.stdout.decode() == str(home)
    leaked = {name for name in os.environ if name.startswith("GIT_")}
    assert leaked == {"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TERMINAL_PROMPT"}


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
