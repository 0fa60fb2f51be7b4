"""The warm work trees, without hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pygit2.enums import ObjectType

from patchq.gate.hooks.warm import Slot
from tests.helpers.gitrepo import commit_files, git, make_repo

FILES = {"a.txt": "a\n", "d/b.txt": "b\n", "run": "#!/bin/sh\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def tree(tmp_path: Path, repo: Path) -> Slot:
    (tmp_path / "slot").mkdir()
    return Slot(tmp_path / "slot", repo / ".git/objects", -1)


def show(tree: Slot, repo: Path, commit: str) -> None:
    tree.show(git("rev-parse", f"{commit}^{{tree}}", cwd=repo), commit, {})


def files(tree: Slot) -> dict[str, bytes]:
    paths = [path for path in tree.tree.rglob("*") if path.is_file()]
    found = {str(path.relative_to(tree.tree)): path.read_bytes() for path in paths}
    return {name: data for name, data in found.items() if not name.startswith(".git/")}


@pytest.mark.parametrize("shown", ["", "another 4b825dc642cb6eb9a060e54bf8d69288fbee4904"])
def test_a_tree_in_doubt_is_made_anew(repo: Path, tree: Slot, shown: str) -> None:
    show(tree, repo, git("rev-parse", "HEAD", cwd=repo))
    (tree.tree / "a.txt").write_text("half\n")
    (tree.path / "shown").write_text(shown)
    show(tree, repo, git("rev-parse", "HEAD", cwd=repo))
    assert files(tree)["a.txt"] == b"a\n"


@pytest.mark.parametrize("own", [False, True], ids=["in the repository", "in the work tree"])
def test_an_empty_object_is_no_hindrance(repo: Path, tree: Slot, own: bool) -> None:
    start = git("rev-parse", "HEAD", cwd=repo)
    show(tree, repo, start)
    commit = commit_files(repo, {"a.txt": "A\n"})
    oid, top = git("rev-parse", f"{commit}:a.txt", f"{commit}^{{tree}}", cwd=repo).split()
    place = repo / ".git/objects" / oid[:2] / oid[2:]
    place.unlink()
    if own:
        place = tree.gitdir / "objects" / oid[:2] / oid[2:]
        place.parent.mkdir()
    place.touch()
    tree.show(top, start, {oid: (ObjectType.BLOB, b"A\n")})
    assert files(tree)["a.txt"] == b"A\n"
