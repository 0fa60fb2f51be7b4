"""Git tidies up after landings, as it does after its own commits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.gate.git.repository import Repository
from patchq.gate.git.tidying import Tidying
from tests.helpers.command import drop, patchq
from tests.helpers.gitrepo import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n"})


def wait_for(there: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not there():
        assert time.monotonic() < until
        time.sleep(0.05)


def files(prefix: str) -> str:
    return "".join(f"FILE: {prefix}/{n}.txt\n```\n{prefix} {n}\n```\n" for n in range(30))


def packs(repo: Path) -> list[Path]:
    return sorted(repo.glob(".git/objects/pack/*.pack"))


def test_packs_of_many_landings_become_one(repo: Path) -> None:
    patchq("init", cwd=repo)
    drop(repo / ".patchq", {"x.md": files("x")})
    patchq("run", cwd=repo)
    drop(repo / ".patchq", {"y.md": files("y")})
    patchq("run", cwd=repo)
    assert len(packs(repo)) == 2
    for key, value in (("gc.auto", "1000"), ("gc.autoPackLimit", "1"), ("maintenance.auto", "1")):
        git("config", key, value, cwd=repo)
    drop(repo / ".patchq", {"z.md": files("z")})
    patchq("run", cwd=repo)
    wait_for(lambda: len(packs(repo)) == 1 and not (repo / ".git/gc.pid").exists())
    assert git("ls-tree", "-r", "--name-only", "patchq/z", cwd=repo).count("z/") == 30
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_git_is_asked_once_and_only_where_it_may(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    stand_in = tmp_path / "bin/git"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\necho "$GIT_DIR $*" >> "{log}"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=":")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    git_repo = Repository.open(repo)
    for wanted in ("false", "true"):  # git's own configuration has the last word
        git_repo.raw_repository.config["maintenance.auto"] = wanted
        tidying = Tidying(git_repo)
        tidying.ask()
        for _ in range(3):
            tidying.due = True
            tidying.ask()
        assert (tidying.process is not None) == (wanted == "true")
    assert tidying.process is not None
    assert tidying.process.wait(60) == 0
    (line,) = log.read_text().splitlines()
    assert line.startswith(f"{git_repo.commondir} ")
    assert "maintenance run --auto" in line
