from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from patchq.gate.git.checkout import Checkout, busy, checkouts, dirty
from patchq.gate.git.repository import Repository
from tests.helpers.gitrepo import commit_files, git, make_repo

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


UNMERGED = """\
oid=$(git rev-parse HEAD:README) && git rm -q --cached README
for n in 1 2 3; do printf '100644 %s %s\tREADME\n' $oid $n; done | git update-index --index-info
"""
SRC = ["src", "src/a.py", "src/b.py", "README", "README/x"]
STATES: dict[str, tuple[str, list[str], list[str]]] = {
    "clean": ("", ["README", ":(exclude)README", "new", "dir/new", *SRC], []),
    "unstaged, same size": ("echo READ ME >README", ["README"], ["README"]),
    "staged and put back": (
        "echo changed >README && git add README && echo read me >README",
        ["README"],
        ["README"],
    ),
    "a directory instead": ("rm README && mkdir README && touch README/x", ["README"], ["README"]),
    "behind a link": ("mv src real && ln -s real src", ["src/a.py", "README"], ["src/a.py"]),
    "added below and removed": ("mkdir n && touch n/m && git add n && rm n/m", ["n"], ["n"]),
    "unmerged": (UNMERGED, ["README"], ["README"]),
    "untracked": ("touch new", ["new", "src/a.py"], ["new"]),
    "file where a directory is needed": ("touch x.log", ["x.log/deep/er"], ["x.log/deep/er"]),
    "directory where a file is needed": ("mkdir d && touch d/x.log", ["d"], ["d"]),
    "directory that does not give way": ("touch src/x.log", SRC, ["src"]),
    "a name like a pattern": ("echo dirty >src/a.py", ["*.py", "src/a.py"], ["src/a.py"]),
}


@pytest.mark.parametrize("state", STATES)
def test_dirty(path: Path, state: str) -> None:
    tip = git("rev-parse", "HEAD", cwd=path)
    commands, paths, expected = STATES[state]
    subprocess.run(["sh", "-ec", commands], cwd=path, timeout=60, check=True)
    before = (path / ".git/index").read_bytes()
    assert dirty(only(path), tip, paths, {})[0] == expected
    assert (path / ".git/index").read_bytes() == before
