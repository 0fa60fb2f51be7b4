"""A work tree that is registered and out of reach: nothing lands past it, and nothing prunes it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, codes, drop, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, operators_file, tip, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
EDIT = block("a.txt", "two\n", "2\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose `main` is checked out in `../linked` alone."""
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    git("worktree", "add", "-q", str(tmp_path / "linked"), "main", cwd=repo)
    return repo


def run(repo: Path, mode: str, text: str = EDIT) -> dict[str, Any]:
    write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\n")
    return work(repo, x=text)[0]


def hide(linked: Path) -> None:
    linked.rename(linked.with_name("hidden"))


def unmount(linked: Path) -> None:
    hide(linked)
    linked.mkdir()


def move_and_lock(linked: Path) -> None:
    git("worktree", "lock", str(linked), cwd=linked)
    hide(linked)


@pytest.mark.parametrize("go", [hide, unmount, move_and_lock])
@pytest.mark.parametrize("text", [EDIT, block("new.txt", "", "new\n")], ids=["edit", "create"])
def test_auto_mode_proposes(repo: Path, go: Callable[[Path], None], text: str) -> None:
    before, linked = tip(repo), repo.parent / "linked"
    go(linked)
    told = run(repo, "auto", text)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    (problem,) = told["problems"]
    why = "not this work tree" if go is unmount else "there is no such directory"
    assert why in problem["message"]
    assert str(linked) in problem["message"]
    assert "git worktree prune" in problem["hint"]
    assert ("git worktree unlock" in problem["hint"]) == (go is move_and_lock)
    assert tip(repo) == before
    assert not (linked / "new.txt").exists()
    (waiting,) = patchq("--json", "status", cwd=repo).json()["waiting"]
    assert "worktree.unseen" in waiting["warnings"]


def test_accept_refuses_until_it_can_be_seen(repo: Path) -> None:
    before, linked = tip(repo), repo.parent / "linked"
    hide(linked)
    told = run(repo, "review")
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    done = patchq("accept", "x", cwd=repo, code=1)
    assert "worktree.unseen" in done.out + done.err
    assert "git worktree prune" in done.out + done.err
    assert tip(repo) == before
    linked.with_name("hidden").rename(linked)
    patchq("accept", "x", cwd=repo)
    assert (linked / "a.txt").read_text() == "one\n2\nthree\n"


def run_behind(mount: str, repo: Path) -> None:
    """Run patchq in a namespace of its own, in which the command has mounted something."""
    alone = ("unshare", "-r", "-m", "sh", "-c")
    if subprocess.run([*alone, mount], capture_output=True, timeout=60).returncode:
        pytest.skip("no mount can be made here")
    run = f"'{sys.executable}' -m patchq -C '{repo}' run"
    subprocess.run([*alone, f"{mount} && exec {run}"], check=True, timeout=120)


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
def test_a_file_that_cannot_be_replaced_holds_its_batch(repo: Path) -> None:
    linked = repo.parent / "linked"
    write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": block("b.txt", "b\n", "B\n")})
    mount = f"mount --bind '{linked}/a.txt' '{linked}/a.txt'"
    run_behind(mount, repo)
    stuck, good = report(repo / ".patchq", "x"), report(repo / ".patchq", "y")
    assert (stuck["state"], codes(stuck)) == ("held", [("worktree.unseen", "warning")])
    assert str(linked) in stuck["problems"][0]["message"] + stuck["problems"][0]["hint"]
    assert good["state"] == "applied"
    assert (linked / "b.txt").read_text() == "B\n"
    assert git("status", "--porcelain", cwd=linked) == ""
    assert "worktree.unseen" in patchq("status", cwd=repo).out
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "x")["state"] == "applied"
    assert git("status", "--porcelain", cwd=linked) == ""


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
def test_a_change_below_a_folder_that_cannot_be_written_is_proposed(repo: Path) -> None:
    sub = repo.parent / "linked/sub"
    commit_files(sub.parent, {"sub/c.txt": "c\n"})
    write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": block("sub/c.txt", "c\n", "C\n"), "y.md": EDIT})
    mount = f"mount --bind '{sub}' '{sub}' && mount -o remount,ro,bind '{sub}'"
    run_behind(mount, repo)
    left, good = report(repo / ".patchq", "x"), report(repo / ".patchq", "y")
    assert (left["state"], codes(left)) == ("proposed", [("worktree.unseen", "warning")])
    assert f"{sub} cannot be written" in left["problems"][0]["message"]
    assert good["state"] == "applied"
