"""The tests' own ground: nothing of the user's configuration gets in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pygit2

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
