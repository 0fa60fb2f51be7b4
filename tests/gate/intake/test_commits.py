"""`patchq submit --branch`, `--range` and `--worktree`: commits become batches, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

CONFIG = "version: 1\nmode: auto\ntarget: main\npaths: {review: ['!*.bin', '!empty']}\n"
LINES = "".join(f"line {number}\n" for number in range(1, 21))
FILES: dict[str, bytes | str] = {
    "a.txt": LINES,
    "old.txt": LINES,
    "tool.sh": "#!/bin/sh\ntrue\n",
    "x.bin": b"\0one",
    "mixed.txt": "one\r\ntwo\nthree\r\n",
    "shown.md": "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository in auto mode, whose branch `work` is checked out and `main` is the target."""
    repo = make_repo(tmp_path / "repo", FILES)
    commit_files(repo, {".patchq.yaml": CONFIG})
    patchq("init", cwd=repo)
    git("checkout", "-q", "-b", "work", cwd=repo)
    return repo


def tree(repo: Path, of: str) -> str:
    return git("rev-parse", f"{of}^{{tree}}", cwd=repo)


def move_main(repo: Path) -> None:
    """Another commit on the target, and its tree put into what the work would be merged with."""
    there = repo.parent / "main"
    git("worktree", "add", "-q", str(there), "main", cwd=repo)
    commit_files(there, {"other.txt": "new\n", "a.txt": LINES.replace("line 19\n", "LINE 19\n")})
    git("worktree", "remove", "--force", str(there), cwd=repo)


CHANGES: dict[str, dict[str, bytes | str]] = {
    "lines": {"a.txt": LINES.replace("line 2\n", "LINE 2\n").replace("line 9\n", "")},
    "a new binary file": {"new.bin": bytes(range(256))},
    "not UTF-8": {"a.txt": b"caf\xe9\n"},
    "mixed line ends": {"mixed.txt": "one\r\nTWO\nthree\r\n"},
    "edits shown in a file": {"shown.md": "<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE\n"},
}


@pytest.mark.parametrize("files", CHANGES.values(), ids=CHANGES)
def test_what_was_committed_lands_byte_for_byte(repo: Path, files: dict[str, bytes | str]) -> None:
    commit_files(repo, files, "Change it\n\nIn two lines.")
    patchq("submit", "--branch", "work", cwd=repo)
    patchq("run", cwd=repo, code=None)
    assert report(repo / ".patchq", "work")["problems"] == []
    assert tree(repo, "main") == tree(repo, "work")
    message = git("log", "-1", "--format=%B", "main", cwd=repo)
    assert message.startswith("Change it\n\nIn two lines.\n")


def test_renames_and_modes_land_where_the_target_moved(repo: Path) -> None:
    git("mv", "old.txt", "new.txt", cwd=repo)
    (repo / "new.txt").write_text(LINES.replace("line 3\n", "LINE 3\n"))
    commit_files(repo, {"x.bin": b"\0three", "a.txt": LINES.replace("line 3\n", "LINE 3\n")})
    (repo / "tool.sh").chmod(0o755)
    commit_files(repo, {}, "Make it a program")
    move_main(repo)
    wanted = git("merge-tree", "--write-tree", "main", "work", cwd=repo)
    patchq("submit", "--range", "main..work", "--message", "Together", cwd=repo)
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "Make-it-a-program")
    assert told["state"] == "proposed"
    assert [problem["message"] for problem in told["problems"]] == [
        "tool.sh would be a program (mode 100755)"
    ]
    assert tree(repo, told["commit"]) == wanted
    assert {edit["op"] for edit in told["edits"]} == {"replace", "rename", "write", "mode"}
    patchq("accept", "Make-it-a-program", cwd=repo)
    assert tree(repo, "main") == wanted


def test_a_binary_file_that_both_changed_is_a_conflict(repo: Path) -> None:
    commit_files(repo, {"x.bin": b"\0two"})
    git("branch", "-q", "theirs", "main", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    tip = commit_files(repo, {"x.bin": b"\0three"})
    patchq("submit", "--branch", "work", cwd=repo)
    patchq("run", cwd=repo, code=None)
    (problem,) = report(repo / ".patchq", "work")["problems"]
    assert (problem["code"], problem["path"]) == ("conflict.base", "x.bin")
    assert problem["conflicts_with"]["commit"] == tip


def test_a_work_tree_with_what_is_not_committed(repo: Path) -> None:
    commit_files(repo, {"a.txt": LINES.replace("line 2\n", "LINE 2\n")}, "Raise it")
    (repo / "b.txt").write_text("new\n")
    (repo / "x.bin").unlink()
    (repo / ".patchq/ignored").write_text("x")
    index = (repo / ".git/index").read_bytes()
    patchq("submit", "--worktree", cwd=repo)
    patchq("run", cwd=repo)
    assert (repo / ".git/index").read_bytes() == index
    git("add", "-A", cwd=repo)
    assert git("write-tree", cwd=repo) == tree(repo, "main")
    assert git("log", "-1", "--format=%s", "main", cwd=repo) == "Raise it"


def test_a_series_is_one_batch_for_each_commit(repo: Path) -> None:
    for number in (1, 2, 3):
        commit_files(repo, {"a.txt": LINES.replace("line 2\n", f"LINE {number}\n")}, f"{number}")
    move_main(repo)
    done = patchq("submit", "--branch", "work", "--series", cwd=repo)
    assert done.out.split() == ["work-1", "work-2", "work-3"]
    patchq("run", cwd=repo)
    assert git("log", "-3", "--format=%s", "main", cwd=repo).split() == ["3", "2", "1"]
    wanted = git("merge-tree", "--write-tree", "main~3", "work", cwd=repo)
    assert tree(repo, "main") == wanted


@pytest.mark.parametrize("start", [b"\0\1", b"\xff"])
def test_a_secret_among_bytes_is_refused(repo: Path, start: bytes) -> None:
    key = ("AK" + "IAZ7QX3MPLW2RTN5VK").encode()
    commit_files(repo, {"x.bin": start + b"id=" + key + b"\nmore\xfe\n"})
    patchq("submit", "--branch", "work", cwd=repo)
    patchq("run", cwd=repo, code=None)
    told = report(repo / ".patchq", "work")
    assert [problem["code"] for problem in told["problems"]] == ["edit.secret"]
    assert key.decode() not in str(told)


def submodule(repo: Path) -> None:
    tip = git("rev-parse", "main", cwd=repo)
    git("update-index", "--add", "--cacheinfo", f"160000,{tip},sub", cwd=repo)
    git("commit", "-q", "-m", "Add it", cwd=repo)
    (repo / "sub").mkdir()


def dirty(repo: Path) -> None:
    commit_files(repo, {"a.txt": "x\n"})
    (repo / "b.txt").write_text("x\n")


def rebase(repo: Path) -> None:
    (repo / ".git/rebase-merge").mkdir()


WRONG = {
    "no branch": (Path.exists, ("--branch", "nobody"), "there is no branch 'nobody'"),
    "no commit": (Path.exists, ("--range", "main..nobody"), "there is no commit 'nobody'"),
    "a submodule": (submodule, ("--branch", "work"), "sub is a submodule, which no change may"),
    "not committed": (dirty, ("--branch", "work"), "changes of work that are not committed"),
    "a rebase": (rebase, ("--worktree",), "in the middle of a rebase"),
    "a series of a work tree": (dirty, ("--worktree", "--series"), "--series hands in commits"),
}


@pytest.mark.parametrize(("make", "words", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_handed_in_is_said(
    repo: Path, make: Callable[[Path], object], words: tuple[str, ...], said: str
) -> None:
    make(repo)
    done = patchq("submit", *words, cwd=repo, code=2)
    assert said in done.err
    assert list((repo / ".patchq/inbox").iterdir()) == []
