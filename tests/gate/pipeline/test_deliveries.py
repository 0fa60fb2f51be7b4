"""Batches that find their quotes again in what they made, delivered again in other words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command import block, drop, give, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

CONFIG = "version: 1\nmode: auto\ntarget: trunk\n"


def text(letters: str) -> str:
    return "".join(f"{letter}\n" for letter in letters)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": text("cbcbcdc"), ".patchq.yaml": CONFIG})
    git("branch", "trunk", cwd=repo)
    patchq("init", cwd=repo)
    return repo


def edits(*pairs: tuple[str, str]) -> str:
    return "\n".join(block("a.txt", text(old), text(new)) for old, new in pairs)


def now(repo: Path) -> str:
    return git("show", "trunk:a.txt", cwd=repo).replace("\n", "")


ONE_TAKES_BACK = edits(("dc", "dcca"), ("ca", "c"))


def test_the_same_edits_in_another_envelope(repo: Path) -> None:
    assert give(repo, "first", ONE_TAKES_BACK)["state"] == "applied"
    assert now(repo) == "cbcbcdcc"
    told = give(repo, "again", f"Here it is once more.\n\n{ONE_TAKES_BACK}")
    assert (told["state"], told["duplicate_of"], now(repo)) == ("duplicate", "first", "cbcbcdcc")


def test_the_same_edits_beside_each_other(repo: Path) -> None:
    drop(repo / ".patchq", {"1.md": ONE_TAKES_BACK, "2.md": f"Once more.\n\n{ONE_TAKES_BACK}"})
    patchq("run", cwd=repo)
    states = {report(repo / ".patchq", id)["state"] for id in ("1", "2")}
    assert (states, now(repo)) == ({"applied", "duplicate"}, "cbcbcdcc")


def test_the_same_edits_once_the_branch_has_moved(repo: Path) -> None:
    give(repo, "first", ONE_TAKES_BACK)
    give(repo, "other", block("b.txt", "", "new\n"))
    told = give(repo, "again", f"Here it is once more.\n\n{ONE_TAKES_BACK}")
    assert (told["state"], told["duplicate_of"]) == ("duplicate", "first")


def test_the_same_edits_once_their_lines_have_changed(repo: Path) -> None:
    give(repo, "first", ONE_TAKES_BACK)
    git("checkout", "-q", "trunk", cwd=repo)
    commit_files(repo, {"a.txt": text("cbcbcdcx")}, "Touch it")
    git("checkout", "-q", "main", cwd=repo)
    told = give(repo, "again", f"Here it is once more.\n\n{ONE_TAKES_BACK}", code=1)
    assert [problem["code"] for problem in told["problems"]] == ["conflict.base"]
    assert now(repo) == "cbcbcdcx"


def test_a_declared_base_is_believed(repo: Path) -> None:
    give(repo, "first", ONE_TAKES_BACK)
    tip = git("rev-parse", "trunk", cwd=repo)
    told = give(repo, "again", f"---\nbase: {tip}\n---\n{ONE_TAKES_BACK}")
    assert (told["state"], now(repo)) == ("applied", "cbcbcdccc")


def test_what_no_batch_made_is_a_first_delivery(repo: Path) -> None:
    git("checkout", "-q", "trunk", cwd=repo)
    commit_files(repo, {"a.txt": text("cbcbcdcc")}, "By a person")
    git("checkout", "-q", "main", cwd=repo)
    assert give(repo, "first", ONE_TAKES_BACK)["state"] == "applied"


def test_after_its_revert_it_is_a_new_attempt(repo: Path) -> None:
    give(repo, "first", ONE_TAKES_BACK)
    patchq("revert", "first", cwd=repo)
    told = give(repo, "again", f"Here it is once more.\n\n{ONE_TAKES_BACK}")
    assert (told["state"], now(repo)) == ("applied", "cbcbcdcc")
