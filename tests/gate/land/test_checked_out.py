"""Landing on a checked-out branch: the files follow, and nobody's work is lost.

Past a work tree that is registered and out of reach nothing lands, and nothing prunes it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, codes, drop, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config, write_files

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", ".gitignore": "log.txt\n"}


EDIT = block("a.txt", "two\n", "2\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    configure(repo, "review")
    patchq("init", cwd=repo)
    return repo


@pytest.fixture
def linked(repo: Path) -> Path:
    """Where alone `main` is checked out."""
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    git("worktree", "add", "-q", "../linked", "main", cwd=repo)
    return repo.parent / "linked"


def configure(repo: Path, mode: str) -> None:
    write_config(repo, f"version: 1\ntarget: main\nmode: {mode}\n")


def run(repo: Path, mode: str, **responses: str) -> list[dict[str, Any]]:
    """Have the responses worked off; their reports."""
    configure(repo, mode)
    return work(repo, **responses)


def status(repo: Path) -> str:
    return git("status", "--porcelain", cwd=repo)


def snapshot(repo: Path) -> dict[str, bytes]:
    """HEAD, the index and the files, byte for byte."""
    files = [*filter(Path.is_file, repo.iterdir()), repo / ".git/HEAD", repo / ".git/index"]
    return {path.name: path.read_bytes() for path in files}


def test_review_mode_touches_neither_head_nor_index_nor_files(repo: Path) -> None:
    write_files(repo, {"b.txt": "staged\n"})
    git("add", "b.txt", cwd=repo)
    write_files(repo, {"b.txt": "more\n", "a.txt": "mine\n"})
    before = snapshot(repo)
    told = run(repo, "review", x=EDIT, y=block("new.txt", "", "new\n"))
    assert [report["state"] for report in told] == ["proposed", "proposed"]
    assert snapshot(repo) == before


def test_linked_work_tree_follows(repo: Path, linked: Path) -> None:
    before = snapshot(repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert told["state"] == "applied"
    assert status(linked) == ""
    assert (linked / "a.txt").read_text() == "one\n2\nthree\n"
    assert snapshot(repo) == before


@pytest.mark.parametrize("way", ["d.txt", "g.txt/inner"])
def test_only_the_batch_that_is_in_the_way_is_proposed(repo: Path, way: str) -> None:
    commit_files(repo, {name: f"{name}\n" for name in ("c.txt", "d.txt", "e.txt")})
    write_files(repo, {way: "mine\n"})
    v, x = (block(name, f"{name}\n", "new\n") for name in ("c.txt", "e.txt"))
    y = block("d.txt", "d.txt\n", "D\n") if way == "d.txt" else block("g.txt", "", "new\n")
    told = run(repo, "auto", v=v, y=y, x=x)
    assert [report["state"] for report in told] == ["applied", "proposed", "applied"]
    assert codes(told[1]) == [("worktree.dirty", "warning")]
    assert (repo / way).read_text() == "mine\n"
    assert git("rev-list", "--count", "main", cwd=repo) == "4"


IN_THE_WAY = {
    "changed": (EDIT, {"a.txt": "one\ntwo\nthree and more\n"}),
    "untracked": (block("new.txt", "", "new\n"), {"new.txt": "mine\n"}),
    "ignored": (block("log.txt", "", "new\n"), {"log.txt": "mine\n"}),
}


@pytest.mark.parametrize(("text", "files"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_g07_work_in_the_way_is_kept(repo: Path, text: str, files: dict[str, str]) -> None:
    start = tip(repo)
    write_files(repo, files)
    before = snapshot(repo)
    auto, review = run(repo, "auto", x=text) + run(repo, "review", y=f"{text}\n")
    assert [told["state"] for told in (auto, review)] == ["proposed", "proposed"]
    assert codes(auto) == [("worktree.dirty", "warning")]
    assert codes(review) == [("worktree.dirty", "warning"), ("conflict.pending", "warning")]
    done = patchq("accept", "x", cwd=repo, code=1)
    (path,) = files
    says = f"is not committed in the work tree {repo}, and in the way\n  move it away"
    if path == "a.txt":
        says = f"has uncommitted changes in the work tree {repo}\n  commit or stash them"
    assert done.err == f"patchq: worktree.dirty: {path} {says}; then `patchq accept x`\n"
    assert tip(repo) == start
    assert tip(repo, "patchq/x") == auto["commit"]
    assert snapshot(repo) == before
    git("clean", "-q", "-f", "-d", "-x", "-e", "/.patchq*", cwd=repo)
    git("checkout", "-q", ".", cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert status(repo) == ""


BUSY = {
    "rebasing": (("rebase", "side"), ("rebase", "--abort")),
    "merging": (("merge", "side"), ("merge", "--abort")),
    "cherry-picking": (("cherry-pick", "side"), ("cherry-pick", "--abort")),
    "reverting": (("revert", "--no-edit", "HEAD~1"), ("revert", "--abort")),
    "bisecting": (("bisect", "start"), ("bisect", "reset")),
}


@pytest.mark.parametrize("doing", BUSY)
def test_g07_batch_for_a_busy_target_waits(repo: Path, doing: str) -> None:
    begin, end = BUSY[doing]
    git("checkout", "-q", "-b", "side", cwd=repo)
    commit_files(repo, {"b.txt": "side\n"})
    git("checkout", "-q", "main", cwd=repo)
    commit_files(repo, {"b.txt": "main\n"})
    commit_files(repo, {"b.txt": "again\n"})
    done = subprocess.run(["git", *begin], cwd=repo, capture_output=True, timeout=60)
    assert bool(done.returncode) == (doing != "bisecting"), "was to stop at a conflict"
    start = tip(repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert (told["state"], codes(told)) == ("held", [("target.busy", "warning")])
    assert tip(repo) == start
    shown = patchq("status", cwd=repo).out
    assert "target.busy" in shown
    assert f"{doing} main" in shown
    git(*end, cwd=repo)
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "x")
    assert (told["state"], codes(told)) == ("applied", [])
    assert tip(repo) == told["commit"]
    assert status(repo) == ""


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
def test_auto_mode_proposes(
    repo: Path, linked: Path, go: Callable[[Path], None], text: str
) -> None:
    before = tip(repo)
    go(linked)
    (told,) = run(repo, "auto", x=text)
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


def test_accept_refuses_until_it_can_be_seen(repo: Path, linked: Path) -> None:
    before = tip(repo)
    hide(linked)
    (told,) = run(repo, "review", x=EDIT)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.unseen", "warning")])
    done = patchq("accept", "x", cwd=repo, code=1)
    assert "worktree.unseen" in done.out + done.err
    assert "git worktree prune" in done.out + done.err
    assert tip(repo) == before
    linked.with_name("hidden").rename(linked)
    patchq("accept", "x", cwd=repo)
    assert (linked / "a.txt").read_text() == "one\n2\nthree\n"


def run_behind(mount: str, repo: Path, **responses: str) -> list[dict[str, Any]]:
    """Have them worked off in a namespace of its own, in which something is mounted."""
    configure(repo, "auto")
    drop(repo / ".patchq", {f"{id}.md": text for id, text in responses.items()})
    alone = ("unshare", "-r", "-m", "sh", "-c")
    if subprocess.run([*alone, mount], capture_output=True, timeout=60).returncode:
        pytest.skip("no mount can be made here")
    run = f"'{sys.executable}' -m patchq -C '{repo}' run"
    subprocess.run([*alone, f"{mount} && exec {run}"], check=True, timeout=120)
    return [report(repo / ".patchq", id) for id in responses]


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
def test_a_file_that_cannot_be_replaced_holds_its_batch(repo: Path, linked: Path) -> None:
    mount = f"mount --bind '{linked}/a.txt' '{linked}/a.txt'"
    stuck, good = run_behind(mount, repo, x=EDIT, y=block("b.txt", "b\n", "B\n"))
    assert (stuck["state"], codes(stuck)) == ("held", [("worktree.unseen", "warning")])
    assert str(linked) in stuck["problems"][0]["message"] + stuck["problems"][0]["hint"]
    assert good["state"] == "applied"
    assert (linked / "b.txt").read_text() == "B\n"
    assert status(linked) == ""
    assert "worktree.unseen" in patchq("status", cwd=repo).out
    patchq("run", cwd=repo)
    assert report(repo / ".patchq", "x")["state"] == "applied"
    assert status(linked) == ""


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs mount namespaces")
def test_a_change_below_a_folder_that_cannot_be_written_is_proposed(
    repo: Path, linked: Path
) -> None:
    sub = linked / "sub"
    commit_files(linked, {"sub/c.txt": "c\n"})
    mount = f"mount --bind '{sub}' '{sub}' && mount -o remount,ro,bind '{sub}'"
    left, good = run_behind(mount, repo, x=block("sub/c.txt", "c\n", "C\n"), y=EDIT)
    assert (left["state"], codes(left)) == ("proposed", [("worktree.unseen", "warning")])
    assert f"{sub} cannot be written" in left["problems"][0]["message"]
    assert good["state"] == "applied"
