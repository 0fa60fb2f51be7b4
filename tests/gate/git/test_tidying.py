"""Git tidies up after landings, as it does after its own commits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

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
