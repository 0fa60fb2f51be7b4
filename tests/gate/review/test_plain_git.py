"""Proposals decided by plain git: noticed at a glance, written down by the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gate.review.beside import in_review_mode
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, tip

EDIT = block("a.txt", "two\n", "2\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = in_review_mode(tmp_path, {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"})
    drop(repo / ".patchq", {"x.md": EDIT})
    assert run(repo)["state"] == "proposed"
    return repo


def run(repo: Path) -> dict[str, Any]:
    patchq("run", cwd=repo)
    return report(repo / ".patchq", "x")


def refs(repo: Path, below: str = "refs/patchq") -> list[str]:
    return git("for-each-ref", "--format=%(refname)", below, cwd=repo).split()


def looks(repo: Path, state: str, note: str) -> None:
    """`status` and `log` show the state and how it came to it."""
    for words in (("status",), ("status", "x"), ("log",)):
        line = next(line for line in patchq(*words, cwd=repo).out.splitlines() if note in line)
        waits = words == ("status",) and state == "proposed"
        assert line.split()[0] == ("x" if waits else state), words
    assert patchq("--json", "status", "x", cwd=repo).json()["state"] == state


def test_what_is_told_follows_a_branch_that_a_person_changed(repo: Path) -> None:
    before = report(repo / ".patchq", "x")
    tree = repo.parent / "tree"
    git("worktree", "add", "-q", str(tree), "patchq/x", cwd=repo)
    by_hand = commit_files(tree, {"more.txt": "by hand\n"}, "Go on by hand")
    git("worktree", "remove", str(tree), cwd=repo)
    looks(repo, "proposed", "changed by hand")
    (waits,) = patchq("--json", "status", cwd=repo).json()["waiting"]
    assert waits["size"]["files"] == before["size"]["files"] + 1
    for verb in ("show", "accept", "show"):
        told = patchq("--json", verb, "x", cwd=repo).json()
        assert told["commit"] == by_hand
        assert told["tree"] == git("rev-parse", f"{by_hand}^{{tree}}", cwd=repo)
        assert (told["message"], told["size"]) == ("Go on by hand", waits["size"])
        assert before["diff"] in told["diff"]
        assert "+by hand" in told["diff"]
    assert tip(repo) == by_hand
    assert git("status", "--porcelain", cwd=repo) == ""
    assert "+by hand" in (repo / ".patchq/done/x.report.md").read_text()


MOVE = "commit b.txt=B"
SQUASH = "merge -q --squash patchq/x"
LANDINGS = {
    "merge commit": [MOVE, "merge -q --no-ff -m Merged patchq/x"],
    "merged and deleted": ["merge -q patchq/x", "branch -q -d patchq/x"],
    "rebased": [MOVE, "checkout -q patchq/x", "rebase -q main", "checkout -q main",
                "merge -q --ff-only patchq/x"],
    "squashed with another message": [SQUASH, "commit -q -m Mine", "commit a.txt=one\n2\n3\n"],
    "squashed behind another and deleted":
        [MOVE, SQUASH, "commit -q -m Mine", "branch -q -D patchq/x"],
    "merged with a person's commit":
        ["checkout -q patchq/x", "commit b.txt=mine", "checkout -q main", "merge -q patchq/x"],
}  # fmt: skip


@pytest.mark.parametrize("steps", LANDINGS.values(), ids=LANDINGS)
def test_landing_by_hand_is_noticed(repo: Path, steps: list[str]) -> None:
    for step in steps:
        path, _, text = step.removeprefix("commit ").partition("=")
        if text:
            commit_files(repo, {path: text})
        else:
            git(*step.split(), cwd=repo)
    looks(repo, "accepted", "by hand")
    assert report(repo / ".patchq", "x")["state"] == "proposed"
    told = run(repo)
    assert (told["state"], told["branch"]) == ("accepted", None)
    assert git("merge-base", "--is-ancestor", told["commit"], "main", cwd=repo) == ""
    assert told["tree"] == tip(repo, f"{told['commit']}^{{tree}}")
    assert refs(repo) == []
    assert refs(repo, "refs/heads/patchq") == []
    assert "accepted" in (repo / ".patchq/done/x.report.md").read_text()
    assert patchq("status", cwd=repo).out.count("\n") == 2, "nothing waits"


def test_the_same_change_by_another_batch_is_not_this_one(repo: Path) -> None:
    (repo / ".patchq/inbox/y.md").write_text("In other words.\n\n" + EDIT)
    patchq("run", cwd=repo, code=None)
    patchq("accept", "y", cwd=repo)
    commit_files(repo, {"b.txt": "2\n"}, "Something else")
    assert patchq("--json", "status", "x", cwd=repo).json()["state"] == "proposed"


def test_deletion_by_hand_is_noticed(repo: Path) -> None:
    commit = tip(repo, "patchq/x")
    git("branch", "-q", "-D", "patchq/x", cwd=repo)
    looks(repo, "discarded", "deleted by hand")
    assert "Decided with git (1)\n  discarded x " in patchq("status", cwd=repo).out
    told = run(repo)
    assert (told["state"], told["branch"]) == ("discarded", None)
    assert refs(repo) == ["refs/patchq/discarded/x"]
    assert tip(repo, "refs/patchq/discarded/x") == commit


def test_changed_branch_on_a_moved_target_asks_for_a_merge(repo: Path) -> None:
    git("checkout", "-q", "patchq/x", cwd=repo)
    commit_files(repo, {"a.txt": "one\nzwei\nthree\n"})
    git("checkout", "-q", "main", cwd=repo)
    start = commit_files(repo, {"b.txt": "B\n"})
    done = patchq("accept", "x", cwd=repo, code=1)
    assert "target.moved" in done.err
    assert "git merge patchq/x" in done.err
    assert tip(repo) == start
