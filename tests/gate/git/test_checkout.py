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


# ---------------------------------------------------------------- who has the branch


def test_bare_repository_has_only_its_linked_work_trees(path: Path, tmp_path: Path) -> None:
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git("clone", "-q", "--bare", str(path), str(bare), cwd=path)
    assert checkouts(Repository.open(bare), "main") == []
    git("worktree", "add", "-q", str(linked), "main", cwd=bare)
    assert [at.workdir for at in checkouts(Repository.open(bare), "main")] == [linked]


# ---------------------------------------------------------------- what it is doing


def stops(path: Path, *args: str) -> None:
    done = subprocess.run(["git", *args], cwd=path, capture_output=True)
    assert done.returncode, "was to stop at a conflict"


def fork(path: Path) -> None:
    """Branch `side` conflicts with `main`, twice."""
    git("checkout", "-q", "-b", "side", cwd=path)
    commit_files(path, {"README": "side\n"})
    commit_files(path, {"README": "side 2\n"})
    git("checkout", "-q", "main", cwd=path)
    commit_files(path, {"README": "main\n"})


def am(path: Path) -> None:
    patch = git("format-patch", "-1", "--stdout", "side", cwd=path)
    (path / "p.mbox").write_text(patch + "\n")
    stops(path, "am", "p.mbox")


def between_picks(path: Path) -> None:
    stops(path, "cherry-pick", "side~1", "side")
    (path / "README").write_text("mine\n")
    git("commit", "-q", "-a", "-m", "resolved", cwd=path)


DOING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "rebase --apply": ("rebasing", lambda path: stops(path, "rebase", "--apply", "side")),
    "between two picks": ("cherry-picking", between_picks),
    "am": ("applying patches", am),
}


@pytest.mark.parametrize(("word", "start"), DOING.values(), ids=DOING)
def test_busy(path: Path, tmp_path: Path, word: str, start: Callable[[Path], object]) -> None:
    fork(path)
    git("checkout", "-q", "--detach", cwd=path)
    git("worktree", "add", "-q", str(tmp_path / "linked"), "main", cwd=path)
    start(tmp_path / "linked")
    repo = Repository.open(path)
    assert busy(repo, "main") == word
    assert busy(repo, "side") is None


def test_busy_with_a_branch_that_a_rebase_takes_along(path: Path) -> None:
    fork(path)
    git("branch", "stacked", "main", cwd=path)
    commit_files(path, {"src/a.py": "a = 2\n"})
    stops(path, "rebase", "--update-refs", "side")
    assert busy(Repository.open(path), "stacked") == "rebasing"


# ---------------------------------------------------------------- what is not committed


def edit(path: Path) -> None:
    (path / "README").write_text("changed\n")


def edit_keeping_the_size(path: Path) -> None:
    (path / "README").write_text("READ ME\n")


def stage(path: Path) -> None:
    edit(path)
    git("add", "README", cwd=path)


def stage_and_put_back(path: Path) -> None:
    stage(path)
    (path / "README").write_text("read me\n")


def remove(path: Path) -> None:
    (path / "README").unlink()


def link(path: Path) -> None:
    remove(path)
    (path / "README").symlink_to("src/a.py")


def directory(path: Path) -> None:
    remove(path)
    write_files(path, {"README/x": ""})


def parent_is_a_link(path: Path) -> None:
    (path / "src").rename(path / "real")
    (path / "src").symlink_to("real")


def unmerged(path: Path) -> None:
    fork(path)
    git("reset", "-q", "--hard", "HEAD^", cwd=path)
    git("merge", "-q", "side~1", cwd=path)
    git("reset", "-q", "HEAD^", cwd=path)
    oid = git("rev-parse", "HEAD:README", cwd=path)
    entries = f"0 {'0' * 40}\tREADME\n" + "".join(f"100644 {oid} {n}\tREADME\n" for n in (1, 2, 3))
    git("update-index", "--index-info", cwd=path, stdin=entries)
    (path / "README").write_text("read me\n")


def add(path: Path, name: str, *options: str) -> None:
    write_files(path, {name: ""})
    git("add", *options, name, cwd=path)


def added_and_removed(path: Path, name: str) -> None:
    add(path, name)
    (path / name).unlink()


STATES: dict[str, tuple[Callable[[Path], object], list[str], list[str]]] = {
    "clean": (lambda path: None, ["README", "src/a.py", ":(exclude)README", "new", "dir/new"], []),
    "unstaged, same size": (edit_keeping_the_size, ["README"], ["README"]),
    "staged and put back": (stage_and_put_back, ["README"], ["README"]),
    "removed": (remove, ["README", "src/a.py"], ["README"]),
    "a link instead": (link, ["README"], ["README"]),
    "a directory instead": (directory, ["README"], ["README"]),
    "behind a link": (parent_is_a_link, ["src/a.py", "README"], ["src/a.py"]),
    "untracked": (lambda path: write_files(path, {"new": ""}), ["new", "src/a.py"], ["new"]),
    "ignored": (lambda path: write_files(path, {"x.log": ""}), ["x.log"], ["x.log"]),
    "file where a directory is needed": (
        lambda path: write_files(path, {"x.log": ""}),
        ["x.log/deep/er"],
        ["x.log/deep/er"],
    ),
    "directory where a file is needed": (
        lambda path: write_files(path, {"d/x.log": ""}),
        ["d"],
        ["d"],
    ),
    "added and removed": (lambda path: added_and_removed(path, "n"), ["n"], ["n"]),
    "added below": (lambda path: added_and_removed(path, "n/m"), ["n"], ["n"]),
    "unmerged": (unmerged, ["README"], ["README"]),
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
    assert dirty(only(path), tip, paths) == expected
    assert (path / ".git/index").read_bytes() == before


def test_a_directory_may_give_way_to_a_file(path: Path) -> None:
    tip = git("rev-parse", "HEAD", cwd=path)
    whole = ["src", "src/a.py", "src/b.py", "README", "README/x"]
    assert dirty(only(path), tip, whole) == []
    write_files(path, {"src/x.log": ""})
    assert dirty(only(path), tip, whole) == ["src"]
