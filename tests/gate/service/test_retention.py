"""Finished batches leave the queue after a while; what they were stays known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.helpers.command import block, patchq, work
from tests.helpers.gitrepo import commit_files, make_repo, write_config
from tests.helpers.stores import sql

DAY = 86_400
EDIT = block("a.txt", "a\n", "A\n")
OTHER = block("b.txt", "b\n", "B\n")
BAD = block("a.txt", "nowhere\n", "x\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {f"{name}.txt": f"{name}\n" for name in "abcdefgh"})
    configure(repo)
    patchq("init", cwd=repo)
    return repo


def configure(repo: Path, days: int = 0, mode: str = "auto") -> None:
    write_config(repo, f"version: 1\nmode: {mode}\nqueue: {{retention_days: {days}}}\n")


def age(repo: Path, days: float) -> None:
    """Let the verdicts be as old as that."""
    then = time.time() - days * DAY
    root = repo / ".patchq"
    sql(root, "update responses set ended = ? where state = 'ended'", then)
    rank = "(select count(*) from responses o where o.ending < r.ending)"
    aged = f"update responses as r set ending = ? + {rank} where ending > ?"
    sql(root, aged, int(then * 10**9), int(then * 10**9) + 10**6)


def files(repo: Path) -> list[str]:
    return sorted(path.name for path in repo.glob(".patchq/[dr]*/*"))


def expire(repo: Path, days: int = 30) -> None:
    configure(repo, days)
    patchq("run", cwd=repo, code=None)


def test_old_ones_go_and_young_ones_stay(repo: Path) -> None:
    work(repo, good=EDIT, bad=BAD)
    age(repo, 31)
    work(repo, young=OTHER)
    expire(repo, 0)
    assert len(files(repo)) == 9  # 0 is for ever
    expire(repo)
    assert files(repo) == ["young.md", "young.report.json", "young.report.md"]
    assert "applied    good" in patchq("log", cwd=repo).out
    assert patchq("show", "good", "--diff", cwd=repo).out.count("+A") == 1
    assert patchq("--json", "fsck", cwd=repo).json()["ok"]


def test_what_waits_is_never_removed(repo: Path) -> None:
    configure(repo, mode="review")
    work(repo, waits=EDIT, held=f"---\ndepends_on: [later]\n---\n{OTHER}", gone=OTHER)
    patchq("discard", "gone", cwd=repo)
    age(repo, 400)
    expire(repo)
    assert files(repo) == ["waits.md", "waits.report.json", "waits.report.md"]
    assert (repo / ".patchq/active/held.report.json").exists()
    assert patchq("accept", "waits", cwd=repo).out.startswith("accepted")


def test_what_is_not_on_the_target_may_come_again(repo: Path) -> None:
    later = EDIT.replace("a.txt", "later.txt")
    work(repo, reverted=EDIT, refused=later)
    commit_files(repo, {"later.txt": "a\n"})
    patchq("revert", "reverted", cwd=repo)
    age(repo, 31)
    expire(repo)
    again = work(repo, again=EDIT, also=later)
    assert [told["state"] for told in again] == ["applied", "applied"]


def test_what_is_left_of_a_refused_one_is_shown(repo: Path) -> None:
    work(repo, good=EDIT, bad=BAD, same=EDIT)
    age(repo, 31)
    expire(repo)
    page = patchq("show", "bad", cwd=repo).out
    assert "match.none" in page
    assert "its files were removed after `queue.retention_days`" in page
    assert work(repo, again=EDIT)[0]["duplicate_of"] == "good"
    (row,) = patchq("--json", "stats", cwd=repo).json()["rows"]
    assert row["verdicts"] == {"applied": 1, "duplicate": 2, "rejected": 1}
    for verb, why in (("revert", "is rejected"), ("accept", "is rejected"), ("retry", "gone from")):
        assert why in patchq(verb, "bad", cwd=repo, code=2).err
