from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.gate.git.checkout import Checkout, busy, checkouts, dirty
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo, write_files

FILES = {
    "README": "read me\n",
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 1\n",
    "*.py": "a name like a pattern\n",
    ":(exclude)README": "a name like magic\n",
    ".gitignore": "*.log\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "work", FILES)


def only(path: Path, branch: str = "main") -> Checkout:
    (checkout,) = checkouts(Repository.open(path), branch)
    return checkout


def test_bare_repository_has_only_its_linked_work_trees(path: Path, tmp_path: Path) -> None:
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git("clone", "-q", "--bare", str(path), str(bare), cwd=path)
    assert checkouts(Repository.open(bare), "main") == []
    git("worktree", "add", "-q", str(linked), "main", cwd=bare)
    assert [at.workdir for at in checkouts(Repository.open(bare), "main")] == [linked]


DOING = {
    "rebasing": ("main", "git rebase --apply side"),
    "rebasing what it takes along": (
        "below",
        "git branch below; git commit -q --allow-empty -m x; git rebase --update-refs side",
    ),
    "cherry-picking": (
        "main",
        "git cherry-pick side~1 side; echo mine >README; git commit -qam resolved",
    ),
    "applying patches": ("main", "git format-patch -1 --stdout side | git am"),
}


@pytest.mark.parametrize("doing", DOING)
def test_busy(path: Path, tmp_path: Path, doing: str) -> None:
    git("checkout", "-q", "-b", "side", cwd=path)
    commit_files(path, {"README": "side\n"})
    commit_files(path, {"README": "side 2\n"})
    git("checkout", "-q", "main", cwd=path)
    commit_files(path, {"README": "main\n"})
    git("checkout", "-q", "--detach", cwd=path)
    git("worktree", "add", "-q", str(tmp_path / "linked"), "main", cwd=path)
    branch, commands = DOING[doing]
    subprocess.run(["sh", "-c", commands], cwd=tmp_path / "linked", timeout=60)
    repo = Repository.open(path)
    assert busy(repo, branch) == doing.removesuffix(" what it takes along")
    assert busy(repo, "side") is None


def unstaged_of_the_same_size(path: Path) -> None:
    (path / "README").write_text("READ ME\n")


def staged_and_put_back(path: Path) -> None:
    (path / "README").write_text("changed\n")
    git("add", "README", cwd=path)
    (path / "README").write_text("read me\n")


def directory_instead(path: Path) -> None:
    (path / "README").unlink()
    write_files(path, {"README/x": ""})


def behind_a_link(path: Path) -> None:
    (path / "src").rename(path / "real")
    (path / "src").symlink_to("real")


def unmerged(path: Path) -> None:
    oid = git("rev-parse", "HEAD:README", cwd=path)
    entries = f"0 {'0' * 40}\tREADME\n" + "".join(f"100644 {oid} {n}\tREADME\n" for n in (1, 2, 3))
    git("update-index", "--index-info", cwd=path, stdin=entries)


def added_and_removed(path: Path) -> None:
    write_files(path, {"n/m": ""})
    git("add", "n/m", cwd=path)
    (path / "n/m").unlink()


def created(*names: str) -> Callable[[Path], object]:
    return lambda path: write_files(path, dict.fromkeys(names, ""))


SRC = ["src", "src/a.py", "src/b.py", "README", "README/x"]
STATES: dict[str, tuple[Callable[[Path], object], list[str], list[str]]] = {
    "clean": (created(), ["README", ":(exclude)README", "new", "dir/new", *SRC], []),
    "unstaged, same size": (unstaged_of_the_same_size, ["README"], ["README"]),
    "staged and put back": (staged_and_put_back, ["README"], ["README"]),
    "a directory instead": (directory_instead, ["README"], ["README"]),
    "behind a link": (behind_a_link, ["src/a.py", "README"], ["src/a.py"]),
    "added below and removed": (added_and_removed, ["n"], ["n"]),
    "unmerged": (unmerged, ["README"], ["README"]),
    "untracked": (created("new"), ["new", "src/a.py"], ["new"]),
    "file where a directory is needed": (created("x.log"), ["x.log/deep/er"], ["x.log/deep/er"]),
    "directory where a file is needed": (created("d/x.log"), ["d"], ["d"]),
    "directory that does not give way": (created("src/x.log"), SRC, ["src"]),
    "a name like a pattern": (
        lambda path: (path / "src/a.py").write_text("dirty"),
        ["*.py", "src/a.py"],
        ["src/a.py"],
    ),
}


@pytest.mark.parametrize(("make", "paths", "expected"), STATES.values(), ids=STATES)
def test_dirty(
    path: Path, make: Callable[[Path], object], paths: list[str], expected: list[str]
) -> None:
    tip = git("rev-parse", "HEAD", cwd=path)
    make(path)
    before = (path / ".git/index").read_bytes()
    assert dirty(only(path), tip, paths, {})[0] == expected
    assert (path / ".git/index").read_bytes() == before
