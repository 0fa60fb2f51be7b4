"""Landing on a checked-out branch: the files follow, and nobody's work is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, tip, write_files

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", ".gitignore": "*.log\n"}


EDIT = block("a.txt", "two\n", "2\n")
CREATE = block("new.txt", "", "new\n")
CREATE_IGNORED = block("new.log", "", "new\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    configure(repo, "review")
    patchq("init", cwd=repo)
    return repo


def configure(repo: Path, mode: str) -> None:
    (repo / ".patchq.yaml").write_text(f"version: 1\ntarget: main\nmode: {mode}\n")


def run(repo: Path, mode: str, **responses: str) -> list[dict[str, Any]]:
    """Have the responses worked off; their reports."""
    configure(repo, mode)
    drop(repo / ".patchq", {f"{name}.md": text for name, text in responses.items()})
    patchq("run", cwd=repo)
    return [report(repo / ".patchq", name) for name in responses]


def codes(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(problem["code"], problem["severity"]) for problem in told["problems"]]


def status(repo: Path) -> str:
    return git("status", "--porcelain", cwd=repo)


def snapshot(repo: Path) -> dict[str, bytes]:
    """HEAD, the index and the files, byte for byte."""
    files = [path for path in repo.iterdir() if path.is_file() and path.name != ".patchq.yaml"]
    return {
        path.name: path.read_bytes() for path in (*files, repo / ".git/HEAD", repo / ".git/index")
    }


# ---------------------------------------------------------------- it follows


def test_clean_work_tree_follows_in_auto_mode(repo: Path) -> None:
    first, second = run(repo, "auto", first=EDIT, second=CREATE)
    assert [first["state"], second["state"]] == ["applied", "applied"]
    assert status(repo) == ""
    assert (repo / "a.txt").read_text() == "one\n2\nthree\n"
    assert (repo / "new.txt").read_text() == "new\n"
    assert tip(repo) == second["commit"]
    assert git("rev-parse", "main^", cwd=repo) == first["commit"]


def test_clean_work_tree_follows_an_accept(repo: Path) -> None:
    text = f"{EDIT}\nb.txt\n<<<<<<< RENAME\nlib/c.txt\n>>>>>>> RENAME\n"
    run(repo, "review", x=text)
    patchq("accept", "x", cwd=repo)
    assert status(repo) == ""
    assert (repo / "a.txt").read_text() == "one\n2\nthree\n"
    assert (repo / "lib/c.txt").read_text() == "b\n"
    assert not (repo / "b.txt").exists()


def test_review_mode_touches_neither_head_nor_index_nor_files(repo: Path) -> None:
    write_files(repo, {"b.txt": "staged\n"})
    git("add", "b.txt", cwd=repo)
    write_files(repo, {"b.txt": "more\n", "a.txt": "mine\n"})
    before = snapshot(repo)
    told = run(repo, "review", x=EDIT, y=CREATE)
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


def test_other_files_may_be_dirty(repo: Path) -> None:
    write_files(repo, {"b.txt": "mine\n", "untracked.txt": "mine\n"})
    git("rm", "-q", "--cached", ".gitignore", cwd=repo)
    before = status(repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert (told["state"], codes(told)) == ("applied", [])
    assert status(repo) == before
    assert (repo / "a.txt").read_text() == "one\n2\nthree\n"


# ---------------------------------------------------------------- it does not overwrite

IN_THE_WAY = {
    "changed": (EDIT, {"a.txt": "one\ntwo\nthree and more\n"}),
    "untracked": (CREATE, {"new.txt": "mine\n"}),
    "ignored": (CREATE_IGNORED, {"new.log": "mine\n"}),
    "untracked, alike": (CREATE, {"new.txt": "new\n"}),
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
    assert "worktree.dirty" in done.err
    assert next(iter(files)) in done.err
    assert tip(repo) == start
    assert tip(repo, "patchq/x") == auto["commit"]
    assert snapshot(repo) == before
    git("clean", "-q", "-f", "-d", "-x", "-e", "/.patchq*", cwd=repo)
    git("checkout", "-q", ".", cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert status(repo) == ""


def test_staged_change_is_kept(repo: Path) -> None:
    write_files(repo, {"a.txt": "staged\n"})
    git("add", "a.txt", cwd=repo)
    write_files(repo, {"a.txt": FILES["a.txt"]})
    (told,) = run(repo, "auto", x=EDIT)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.dirty", "warning")])
    assert git("show", ":a.txt", cwd=repo) == "staged"


def test_skip_worktree_counts_as_dirty(repo: Path) -> None:
    git("update-index", "--skip-worktree", "a.txt", cwd=repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert (told["state"], codes(told)) == ("proposed", [("worktree.dirty", "warning")])


# ---------------------------------------------------------------- it waits


def stops(repo: Path, *words: str) -> None:
    done = subprocess.run(["git", *words], cwd=repo, capture_output=True, check=False)
    assert done.returncode, "was to stop at a conflict"


def fork(repo: Path) -> None:
    git("checkout", "-q", "-b", "side", cwd=repo)
    commit_files(repo, {"b.txt": "side\n"})
    git("checkout", "-q", "main", cwd=repo)
    commit_files(repo, {"b.txt": "main\n"})


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
    fork(repo)
    if doing == "reverting":
        commit_files(repo, {"b.txt": "again\n"})
    if doing == "bisecting":
        git(*begin, cwd=repo)
    else:
        stops(repo, *begin)
    start = tip(repo)
    (told,) = run(repo, "auto", x=EDIT)
    assert (told["state"], codes(told)) == ("held", [("target.busy", "warning")])
    assert (told["commit"], told["tree"], told["branch"]) == (None, None, None)
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


def test_accept_on_a_busy_target_is_refused(repo: Path) -> None:
    fork(repo)
    run(repo, "review", x=EDIT)
    stops(repo, "rebase", "side")
    start = tip(repo)
    done = patchq("accept", "x", cwd=repo, code=1)
    assert "target.busy" in done.err
    assert tip(repo) == start
    git("rebase", "--abort", cwd=repo)
    patchq("accept", "x", cwd=repo)
    assert status(repo) == ""


def test_what_is_only_proposed_does_not_wait(repo: Path) -> None:
    fork(repo)
    stops(repo, "merge", "side")
    (told,) = run(repo, "auto", x=block("setup.py", "", "x = 1\n"))
    assert (told["state"], codes(told)) == ("proposed", [("path.review", "warning")])


def test_review_mode_proposes_for_a_busy_target(repo: Path) -> None:
    fork(repo)
    stops(repo, "merge", "side")
    (told,) = run(repo, "review", x=EDIT)
    assert told["state"] == "proposed"
