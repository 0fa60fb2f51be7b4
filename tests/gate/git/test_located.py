"""Which file an absolute path names, in a repository with several work trees."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchq.gate.git.checkout import Whereabouts, WorkTrees
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a linked work tree inside, one beside, one that is gone from inside, and a
    repository of its own."""
    repo = make_repo(tmp_path / "shop", {"src/a.py": "a\n", ".gitignore": "*.log\n/out/\n"})
    for branch, place in (("in", "trees/in"), ("gone", "trees/gone"), ("beside", "../beside")):
        git("worktree", "add", "-q", "-b", branch, place, cwd=repo)
    shutil.rmtree(repo / "trees/gone")
    git("init", "-q", "vendor/lib", cwd=repo)
    (tmp_path / "link").symlink_to(repo)
    (repo / "way-out").symlink_to(tmp_path)
    (repo / "way-in").symlink_to("src")
    (repo / "latest.py").symlink_to("src/a.py")
    return repo


@pytest.mark.parametrize("place", [".", "../beside"], ids=["main", "beside"])
@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("shop/src/a.py", "src/a.py"),
        ("shop/new/dir/x.py", "new/dir/x.py"),
        ("shop/way-in/a.py", "src/a.py"),
        ("shop/latest.py", "latest.py"),
        ("shop/trees/in/src/a.py", "src/a.py"),
        ("beside/src/a.py", "src/a.py"),
    ],
)
def test_what_a_path_names(repo: Path, place: str, path: str, below: str) -> None:
    trees = WorkTrees(Repository.open(repo / place))
    assert trees.find(f"{repo.parent}/{path}") == Whereabouts(below)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("other/a.py", "no work tree"),
        ("shop/../shop/src/a.py", "climbs"),
        ("shop/way-out/x.py", "no work tree"),
        ("shop/trees/gone/src/a.py", "a work tree that is gone"),
        ("shop/vendor/lib/a.py", "a repository of its own"),
        ("shop/src/\0.py", "no path that can be looked up"),
    ],
)
def test_what_names_no_file_of_the_repository(repo: Path, path: str, reason: str) -> None:
    found = WorkTrees(Repository.open(repo)).find(f"{repo.parent}/{path}")
    assert found.path is None
    assert reason in found.reason


@pytest.mark.parametrize("place", ["shop", "beside"])
@pytest.mark.parametrize("path", ["src/x.log", "out/a.py"])
def test_what_git_ignores(repo: Path, place: str, path: str) -> None:
    found = WorkTrees(Repository.open(repo)).find(f"{repo.parent}/{place}/{path}")
    assert found == Whereabouts(path, "is one that git ignores")


def test_a_clone_in_the_place_of_a_work_tree_is_another_repository(repo: Path) -> None:
    shutil.rmtree(repo.parent / "beside")
    git("clone", "-q", os.fspath(repo), os.fspath(repo.parent / "beside"), cwd=repo)
    found = WorkTrees(Repository.open(repo)).find(f"{repo.parent}/beside/src/a.py")
    assert found.path is None
    assert "gone" in found.reason


def test_a_submodule_is_a_repository_of_its_own_to_its_parent_alone(repo: Path) -> None:
    inner = make_repo(repo.parent / "inner", {"b.py": "b\n"})
    allowed = ("-c", "protocol.file.allow=always")
    git(*allowed, "submodule", "--quiet", "add", os.fspath(inner), "libs/inner", cwd=repo)
    path = f"{repo}/libs/inner/b.py"
    assert "its own" in WorkTrees(Repository.open(repo)).find(path).reason
    own = WorkTrees(Repository.open(repo / "libs/inner"))
    assert own.find(path) == Whereabouts("b.py")
    assert own.find(f"{repo}/src/a.py").path is None
