"""A work tree that is registered and out of reach: nothing lands past it, and nothing prunes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.git.repository import Repository
from patchq.gate.git.tidying import Tidying
from tests.helpers import forking
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, operators_file, tip, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
EDIT = block("a.txt", "two\n", "2\n")
CREATE = block("new.txt", "", "new\n")


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


def run(repo: Path, mode: str, text: str = EDIT, id: str = "x") -> dict[str, Any]:
    write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\n")
    drop(repo / ".patchq", {f"{id}.md": text})
    patchq("run", cwd=repo)
    return report(repo / ".patchq", id)


def codes(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(problem["code"], problem["severity"]) for problem in told["problems"]]


def hide(linked: Path) -> None:
    linked.rename(linked.with_name("hidden"))


def show(linked: Path) -> None:
    if linked.is_dir():
        linked.rmdir()
    linked.with_name("hidden").rename(linked)


def unmount(linked: Path) -> None:
    hide(linked)
    linked.mkdir()


def move_and_lock(linked: Path) -> None:
    git("worktree", "lock", str(linked), cwd=linked)
    hide(linked)


def put_another_there(linked: Path) -> None:
    hide(linked)
    make_repo(linked, FILES)


OUT_OF_REACH: dict[str, tuple[Callable[[Path], None], str]] = {
    "hidden": (hide, "there is no such directory"),
    "its mount point left": (unmount, "not this work tree"),
    "moved and locked": (move_and_lock, "there is no such directory"),
    "another repository there": (put_another_there, "not this work tree"),
}


@pytest.mark.parametrize("name", OUT_OF_REACH)
@pytest.mark.parametrize("text", [EDIT, CREATE], ids=["edit", "create"])
def test_auto_mode_proposes(repo: Path, name: str, text: str) -> None:
    go, why = OUT_OF_REACH[name]
    before, linked = tip(repo), repo.parent / "linked"
    go(linked)
    told = run(repo, "auto", text)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    assert why in told["problems"][0]["message"]
    assert str(linked) in told["problems"][0]["message"]
    hint = told["problems"][0]["hint"]
    assert "git worktree prune" in hint
    assert ("git worktree unlock" in hint) == (name == "moved and locked")
    assert "patchq accept x" in hint
    assert tip(repo) == before
    assert not (linked / "new.txt").exists()
    (waiting,) = patchq("--json", "status", cwd=repo).json()["waiting"]
    assert "worktree.unseen" in waiting["warnings"]


def test_who_commits_there_takes_nothing_back(repo: Path) -> None:
    linked = repo.parent / "linked"
    hide(linked)
    run(repo, "auto")
    show(linked)
    (linked / "b.txt").write_text("mine\n")
    git("commit", "-qam", "Mine", cwd=linked)
    patchq("accept", "x", cwd=repo)
    assert git("show", "main:a.txt", cwd=repo) == "one\n2\nthree"
    assert git("show", "main:b.txt", cwd=repo) == "mine"
    assert git("status", "--porcelain", cwd=linked) == ""


def test_accept_refuses_until_it_can_be_seen(repo: Path) -> None:
    before, linked = tip(repo), repo.parent / "linked"
    hide(linked)
    told = run(repo, "review")
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    done = patchq("accept", "x", cwd=repo, code=1)
    assert "worktree.unseen" in done.out + done.err
    assert "git worktree prune" in done.out + done.err
    assert tip(repo) == before
    show(linked)
    patchq("accept", "x", cwd=repo)
    assert (linked / "a.txt").read_text() == "one\n2\nthree\n"


def test_pruned_one_is_in_nobodys_way(repo: Path) -> None:
    hide(repo.parent / "linked")
    run(repo, "auto")
    git("worktree", "prune", "--expire=now", cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert run(repo, "auto", CREATE, "y")["state"] == "applied"


def test_revert_refuses(repo: Path) -> None:
    linked = repo.parent / "linked"
    run(repo, "auto")
    before = tip(repo)
    hide(linked)
    done = patchq("revert", "x", cwd=repo, code=1)
    assert "then revert again" in done.out + done.err
    assert "worktree.unseen" in done.out + done.err
    assert "git worktree prune" in done.out + done.err
    assert tip(repo) == before
    show(linked)
    patchq("revert", "x", cwd=repo)
    assert (linked / "a.txt").read_text() == FILES["a.txt"]


def test_proposal_that_is_checked_out_out_of_sight_keeps_its_branch(repo: Path) -> None:
    run(repo, "review")
    linked = repo.parent / "linked"
    git("checkout", "-q", "patchq/x", cwd=linked)
    hide(linked)
    assert "checked out" in patchq("discard", "x", cwd=repo, code=2).err
    assert tip(repo, "patchq/x")


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
@pytest.mark.parametrize("place", [".", "sub"])
def test_read_only_mount(repo: Path, place: str) -> None:
    linked, before = repo.parent / "linked", tip(repo)
    (linked / "sub").mkdir()
    write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": block("sub/new.txt", "", "new\n")})
    part = linked / place
    mount = f"mount --bind '{part}' '{part}' && mount -o remount,bind,ro '{part}'"
    alone = ("unshare", "-r", "-m", "sh", "-c")
    if subprocess.run([*alone, mount], capture_output=True).returncode:
        pytest.skip("no mount can be made here")
    command = f"{mount} && exec '{sys.executable}' -m patchq -C '{repo}' run"
    subprocess.run([*alone, command], check=True)
    told = report(repo / ".patchq", "x")
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    assert "cannot be written" in told["problems"][0]["message"]
    assert tip(repo) == before


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
def test_a_file_that_cannot_be_replaced_holds_its_batch(repo: Path) -> None:
    linked = repo.parent / "linked"
    write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": block("b.txt", "b\n", "B\n")})
    mount = f"mount --bind '{linked}/a.txt' '{linked}/a.txt'"
    alone = ("unshare", "-r", "-m", "sh", "-c")
    if subprocess.run([*alone, mount], capture_output=True).returncode:
        pytest.skip("no mount can be made here")
    run = f"'{sys.executable}' -m patchq -C '{repo}' run"
    subprocess.run([*alone, f"{mount} && exec {run}"], check=True)
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
    before = tip(repo)
    write_config(repo, "version: 1\ntarget: main\nmode: review\n")
    drop(repo / ".patchq", {"z.md": block("a.txt", "three\n", "3\n")})
    patchq("run", cwd=repo)
    for words in ("revert x", "accept z"):
        command = f"{mount} && exec {run.removesuffix('run')}{words}"
        done = subprocess.run([*alone, command], capture_output=True, text=True)
        assert (done.returncode, "worktree.unseen" in done.stdout + done.stderr) == (1, True)
        assert tip(repo) == before
        assert git("status", "--porcelain", cwd=linked) == ""
    assert patchq("--json", "status", cwd=repo).json()["held"] == []
    patchq("revert", "x", cwd=repo)
    assert (linked / "a.txt").read_text() == FILES["a.txt"]


DIE = """
import os, sys
from pathlib import Path
from patchq.gate.git.checkout import checkouts
from patchq.gate.git.repository import Repository
from patchq.gate.git.branches.worktree import Follow
repo = Repository.open(Path(sys.argv[1]))
(place,) = checkouts(repo, "main")
follow = Follow(place, *sys.argv[2:4])
assert follow.prepare() == []
if sys.argv[4] == "moved":
    follow.swap()
    os.system(f"git -C {sys.argv[1]} update-ref refs/heads/main {sys.argv[3]}")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("when", ["moved", "not moved"])
def test_what_a_crash_left_waits_until_the_work_tree_is_seen(repo: Path, when: str) -> None:
    linked, old = repo.parent / "linked", tip(repo)
    git("checkout", "-q", "-b", "next", old, cwd=repo)
    new = commit_files(repo, {"a.txt": "new\n"})
    git("checkout", "-q", "elsewhere", cwd=repo)
    subprocess.run([sys.executable, "-c", DIE, str(repo), old, new, when], check=False)
    lock = repo / ".git/worktrees/linked/index.lock"
    assert lock.exists()
    hide(linked)
    told = run(repo, "auto", CREATE)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    assert lock.exists()
    show(linked)
    patchq("run", cwd=repo)
    assert not lock.exists()
    assert (linked / "a.txt").read_text() == ("new\n" if when == "moved" else FILES["a.txt"])
    assert git("status", "--porcelain", cwd=linked) == ""
    patchq("accept", "x", cwd=repo)
    assert (linked / "new.txt").read_text() == "new\n"


def test_housekeeping_prunes_none(repo: Path) -> None:
    linked = repo.parent / "linked"
    hide(linked)
    (registration,) = (repo / ".git/worktrees").iterdir()
    os.utime(registration / "gitdir", (1e9, 1e9))
    for key, value in (
        ("maintenance.auto", "true"),
        ("gc.auto", "1"),
        ("gc.autoDetach", "false"),
        ("gc.worktreePruneExpire", "now"),
        ("gc.autoPackLimit", "1"),
    ):
        git("config", key, value, cwd=repo)
    for number in range(600):
        git("hash-object", "-w", "--stdin", cwd=repo, stdin=f"{number}\n")
    tidying = Tidying(Repository.open(repo))
    tidying.due = True
    tidying.ask()
    assert tidying.process
    tidying.process.wait(60)
    assert [*(repo / ".git/objects/pack").glob("*.pack")], "git tidied up"
    assert registration.is_dir()


def look(repo: Path, *, code: int) -> dict[str, Any]:
    """What `doctor` says of the work trees."""
    findings = patchq("--json", "doctor", cwd=repo, code=code).json()["findings"]
    (found,) = [found for found in findings if found["what"] == "repository.worktrees"]
    return dict(found)


def test_doctor_names_it(repo: Path) -> None:
    assert look(repo, code=0)["level"] == "ok"
    linked = repo.parent / "linked"
    hide(linked)
    found = look(repo, code=1)
    assert found["level"] == "todo"
    assert str(linked) in found["message"]
    assert "git worktree prune" in found["cure"]
    patchq("doctor", "--before-start", cwd=repo)


def test_status_names_it(repo: Path) -> None:
    assert patchq("--json", "status", cwd=repo).json()["troubles"] == []
    linked = repo.parent / "linked"
    hide(linked)
    (found,) = patchq("--json", "status", cwd=repo).json()["troubles"]
    assert found["what"] == "repository.worktrees"
    assert str(linked) in found["why"]
    said = patchq("status", cwd=repo).out
    assert str(linked) in said
    assert "git worktree prune" in said


def test_daemon_says_so_at_its_start(repo: Path, tmp_path: Path) -> None:
    linked, log = repo.parent / "linked", tmp_path / "log"
    hide(linked)
    write_config(repo, "version: 1\ntarget: main\nmode: auto\n")
    daemon = forking.start("watch", cwd=repo, log=log)
    try:
        drop(repo / ".patchq", {"x.md": EDIT})
        until = time.monotonic() + 60
        while not (repo / ".patchq/done/x.report.json").exists():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
    finally:
        daemon.terminate()
        assert daemon.wait(60) == 0, log.read_text()
    said = log.read_text()
    assert f"the work tree {linked} is out of reach" in said
    assert said.index("out of reach") < said.index("proposed")
