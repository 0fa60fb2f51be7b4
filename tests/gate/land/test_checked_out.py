"""Landing on a checked-out branch: the files follow, and nobody's work is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, codes, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_config, write_files

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", ".gitignore": "log.txt\n"}


EDIT = block("a.txt", "two\n", "2\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    configure(repo, "review")
    patchq("init", cwd=repo)
    return repo


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
    files = [path for path in repo.iterdir() if path.is_file() and path.name != ".patchq.yaml"]
    return {
        path.name: path.read_bytes() for path in (*files, repo / ".git/HEAD", repo / ".git/index")
    }


def test_review_mode_touches_neither_head_nor_index_nor_files(repo: Path) -> None:
    write_files(repo, {"b.txt": "staged\n"})
    git("add", "b.txt", cwd=repo)
    write_files(repo, {"b.txt": "more\n", "a.txt": "mine\n"})
    before = snapshot(repo)
    told = run(repo, "review", x=EDIT, y=block("new.txt", "", "new\n"))
    assert [report["state"] for report in told] == ["proposed", "proposed"]
    assert snapshot(repo) == before


def test_linked_work_tree_follows(repo: Path) -> None:
    linked = repo.parent / "linked"
    git("checkout", "-q", "-b", "elsewhere", cwd=repo)
    git("worktree", "add", "-q", str(linked), "main", cwd=repo)
    before = snapshot(repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert told["state"] == "applied"
    assert git("status", "--porcelain", cwd=linked) == ""
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
