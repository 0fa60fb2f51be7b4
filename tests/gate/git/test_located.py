"""Which file an absolute path names, in a repository with several work trees."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchq.gate.git.checkout import WorkTrees
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a linked work tree inside, one beside, one that is gone from inside, one
    with a clone in its place, and a repository of its own."""
    repo = make_repo(tmp_path / "shop", {"src/a.py": "a\n", ".gitignore": "*.log\n/out/\n"})
    for place in ("trees/in", "trees/gone", "../beside", "../cloned"):
        git("worktree", "add", "-q", "-b", place.split("/")[1], place, cwd=repo)
    for gone in ("trees/gone", "../cloned"):
        shutil.rmtree(repo / gone)
    git("clone", "-q", ".", "../cloned", cwd=repo)
    git("init", "-q", "vendor/lib", cwd=repo)
    (repo / "way-out").symlink_to(tmp_path)
    (repo / "way-in").symlink_to("src")
    (repo / "latest.py").symlink_to("src/a.py")
    return repo


PATHS: dict[str, tuple[str | None, str]] = {
    "shop/new/dir/x.py": ("new/dir/x.py", ""),
    "shop/way-in/a.py": ("src/a.py", ""),
    "shop/latest.py": ("latest.py", ""),
    "shop/trees/in/src/a.py": ("src/a.py", ""),
    "beside/src/a.py": ("src/a.py", ""),
    "beside/src/x.log": ("src/x.log", "git ignores"),
    "shop/out/a.py": ("out/a.py", "git ignores"),
    "other/a.py": (None, "no work tree"),
    "shop/../shop/src/a.py": (None, "climbs"),
    "shop/way-out/x.py": (None, "no work tree"),
    "shop/trees/gone/src/a.py": (None, "a work tree that is gone"),
    "cloned/src/a.py": (None, "gone"),
    "shop/vendor/lib/a.py": (None, "a repository of its own"),
    "shop/src/\0.py": (None, "no path that can be looked up"),
}


@pytest.mark.parametrize("place", [".", "../beside"], ids=["main", "beside"])
@pytest.mark.parametrize("path", PATHS)
def test_what_a_path_names(repo: Path, place: str, path: str) -> None:
    below, reason = PATHS[path]
    found = WorkTrees(Repository.open(repo / place)).find(f"{repo.parent}/{path}")
    assert found.path == below
    assert bool(found.reason) == bool(reason)
    assert reason in found.reason


def test_a_submodule_is_a_repository_of_its_own_to_its_parent_alone(repo: Path) -> None:
    inner = make_repo(repo.parent / "inner", {"b.py": "b\n"})
    allowed = ("-c", "protocol.file.allow=always")
    git(*allowed, "submodule", "--quiet", "add", os.fspath(inner), "libs/inner", cwd=repo)
    path = f"{repo}/libs/inner/b.py"
    assert "its own" in WorkTrees(Repository.open(repo)).find(path).reason
    own = WorkTrees(Repository.open(repo / "libs/inner"))
    assert own.find(path).path == "b.py"
    assert own.find(f"{repo}/src/a.py").path is None
