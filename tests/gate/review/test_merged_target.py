"""Work that merged its target meanwhile: handed in as what it is since the last merge, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gate.review.beside import tree, with_work_tree, work
from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

__all__ = ["work"]


def text(**lines: str) -> str:
    """The file with other lines, by their numbers: `_3="x"`."""
    there = [lines.get(f"_{number}", f"line {number}") for number in range(1, 31)]
    return "\n".join([*there, ""])


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return with_work_tree(make_repo(tmp_path / "repo", {"a.txt": text(), "b.txt": "b\n"}))


def merge(work: Path, *words: str) -> None:
    git("merge", "-q", "--no-edit", *words, cwd=work)


def resolved(work: Path, content: str) -> None:
    merge(work, "--strategy=ours", "--no-commit", "main")
    commit_files(work, {"a.txt": content}, "Merge branch 'main' into work")


def clean(repo: Path, work: Path) -> None:
    commit_files(work, {"a.txt": text(_3="ours")}, "Write three")
    commit_files(repo, {"a.txt": text(_20="theirs"), "c.txt": "c\n"})
    merge(work, "main")


def twice(repo: Path, work: Path) -> None:
    commit_files(work, {"a.txt": text(_3="ours", _9="ours")}, "Write three")
    commit_files(repo, {"a.txt": text(_3="theirs", _20="theirs")})
    resolved(work, text(_3="both", _9="ours", _20="theirs"))
    commit_files(work, {"b.txt": "b\nours\n"}, "Write b")
    commit_files(repo, {"a.txt": text(_3="theirs again", _20="theirs")})
    resolved(work, text(_3="all", _9="ours", _20="theirs"))
    commit_files(work, {"d.txt": "d\n"}, "Write d")


def that_takes_back(repo: Path, work: Path) -> None:
    """Who resolves to their own side takes back what the target wrote, and says so."""
    commit_files(work, {"a.txt": text(_3="ours")}, "Write three")
    commit_files(repo, {"a.txt": text(_3="theirs")})
    merge(work, "-X", "ours", "main")


Made = Callable[[Path, Path], None]


@pytest.mark.parametrize("made", [clean, twice, that_takes_back])
@pytest.mark.parametrize("moved", [False, True], ids=["the target stays", "the target moves on"])
def test_it_lands_as_git_merges_it(repo: Path, work: Path, made: Made, moved: bool) -> None:
    made(repo, work)
    if moved:
        there = (repo / "a.txt").read_text()
        commit_files(repo, {"a.txt": there.replace("line 30\n", "theirs, later\n"), "e.txt": "e\n"})
    wanted = git("merge-tree", "--write-tree", "main", "work", cwd=repo)
    assert moved or wanted == tree(repo, "work")
    patchq("submit", "--branch", "work", cwd=repo)
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "work")
    assert (told["state"], told["problems"]) == ("applied", [])
    assert tree(repo, "main") == wanted
    assert git("status", "--porcelain", cwd=repo) == ""
    assert "Merge branch" not in git("log", "-1", "--format=%B", "main", cwd=repo)


def another_branch(repo: Path, work: Path) -> None:
    commit_files(work, {"a.txt": text(_3="ours")})
    git("checkout", "-q", "-b", "other", "main", cwd=work)
    commit_files(work, {"c.txt": "c\n"})
    git("checkout", "-q", "work", cwd=work)
    merge(work, "other")


def each_other(repo: Path, work: Path) -> None:
    """Both have merged what the other one was."""
    commit_files(work, {"a.txt": text(_3="ours")})
    commit_files(repo, {"a.txt": text(_20="theirs")})
    git("branch", "-q", "was", "main", cwd=repo)
    git("merge", "-q", "--no-edit", "work", cwd=repo)
    merge(work, "was")


WORK = ("--branch", "work")
WRONG = {
    "another branch": (another_branch, WORK, "of what"),
    "each other": (each_other, WORK, "2 commits to begin from"),
    "a series": (clean, (*WORK, "--series"), "has no place in a series"),
    "from before the merge": (clean, ("--range", "main~2..work"), "of what"),
}


@pytest.mark.parametrize(("made", "words", "said"), WRONG.values(), ids=WRONG)
def test_other_merges_are_turned_away(
    repo: Path, work: Path, made: Made, words: tuple[str, ...], said: str
) -> None:
    made(repo, work)
    assert said in patchq("submit", *words, cwd=repo, code=2).err
    assert list((repo / ".patchq/inbox").iterdir()) == []
