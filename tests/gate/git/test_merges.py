"""Git's own merge, of trees on disk and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.core.model.values import FileChange
from patchq.gate.git.merges import Merged, merge
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo

TEN = "".join(f"{number}\n" for number in range(10))


def sides(path: Path, ours: dict[str, str], theirs: dict[str, str]) -> tuple[Repository, list[str]]:
    """A repository, and the trees of a base and of two commits on it."""
    repo = make_repo(path, {"a.txt": TEN, "dir/b.txt": "b\n" * 5})
    base = git("rev-parse", "HEAD", cwd=repo)
    trees = [git("rev-parse", "HEAD^{tree}", cwd=repo)]
    for files in (ours, theirs):
        git("checkout", "-q", "--detach", base, cwd=repo)
        for name in [name for name, text in files.items() if not text]:
            git("rm", "-q", name, cwd=repo)
        commit_files(repo, {name: text for name, text in files.items() if text})
        trees.append(git("rev-parse", "HEAD^{tree}", cwd=repo))
    return Repository.open(repo), trees


@pytest.mark.parametrize(
    ("ours", "theirs", "beyond_lines"),
    [
        ({"a.txt": TEN.replace("3", "x")}, {"a.txt": TEN.replace("3", "y")}, False),
        ({"a.txt": TEN.replace("3", "x")}, {"a.txt": TEN.replace("4", "y")}, False),
        ({"a.txt": ""}, {"a.txt": TEN.replace("3", "x")}, True),
    ],
    ids=["same line", "adjacent lines", "deleted"],
)
def test_a_conflict_has_none(
    tmp_path: Path, ours: dict[str, str], theirs: dict[str, str], beyond_lines: bool
) -> None:
    repo, trees = sides(tmp_path / "r", ours, theirs)
    assert merge(repo, *trees) == Merged(None, beyond_lines)


def test_trees_in_memory_are_merged(tmp_path: Path) -> None:
    one, eight = TEN.replace("1", "one"), TEN.replace("8", "eight")
    repo, trees = sides(tmp_path / "r", {"a.txt": one}, {"a.txt": one.replace("8", "eight")})
    tip = git("rev-list", "--max-parents=0", "HEAD", cwd=tmp_path / "r")
    theirs = repo.write_tree(tip, [FileChange("a.txt", TEN.encode(), eight.encode())])
    assert merge(repo, trees[0], trees[1], theirs) == Merged(trees[2])
