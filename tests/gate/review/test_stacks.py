"""Proposals on top of each other: what depends on one that waits is proposed on its branch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gate.review.beside import TEXT, in_review_mode, moved, sound, told
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import commit_files, git, tip
from tests.helpers.stepping import die


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return in_review_mode(tmp_path, {"a.txt": TEXT, "b.txt": TEXT})


def send(repo: Path, id: str, text: str, *needs: str, more: str = "") -> None:
    """Drop a response that depends on others, and have it worked off."""
    depends = f"depends_on: [{', '.join(needs)}]\n" if needs else ""
    drop(repo / ".patchq", {f"{id}.md": f"---\nagent: of-{id}\n{depends}{more}---\n{text}"})
    patchq("run", cwd=repo, code=None)


def states(repo: Path, *ids: str) -> list[str]:
    return [told(repo, id)["state"] for id in ids]


def says(old: str, new: str) -> str:
    return block("a.txt", f"{old}\n", f"{new}\n")


def stands(repo: Path, id: str, on: str | None) -> None:
    """It waits on top of that one, or of main."""
    now, below = sound(repo, id), tip(repo, f"patchq/{on}" if on else "main")
    assert tip(repo, f"patchq/{id}^") == below
    assert now["stands_on"] == (on and {"batch": on, "commit": below})


@pytest.fixture
def two(repo: Path) -> Path:
    """`b` stands on `a`, and changes the same lines further."""
    send(repo, "a", says("line 5", "five"))
    send(repo, "b", says("five", "FIVE"), "a")
    return repo


def test_what_depends_on_a_proposal_is_proposed_on_top_of_it(two: Path) -> None:
    stands(two, "a", None)
    stands(two, "b", "a")
    assert told(two, "a")["problems"] == told(two, "b")["problems"] == [], "no collision"
    diff = told(two, "b")["diff"]
    assert ("-five\n" in diff, "line 5\n" in diff) == (True, False), "against what it needs"


def test_accept_of_both_is_one_move(two: Path) -> None:
    commits = [told(two, id)["commit"] for id in "ab"]
    result = patchq("accept", "--stack", "b", cwd=two)
    told_of = [line.split()[:2] for line in result.out.splitlines()]
    assert told_of == [["accepted", "a"], ["accepted", "b"]]
    assert states(two, "a", "b") == ["accepted", "accepted"]
    assert [told(two, id)["commit"] for id in "ab"] == commits
    assert tip(two) == commits[1]
    assert "FIVE" in (two / "a.txt").read_text()
    assert git("for-each-ref", "refs/heads/patchq", "refs/patchq/waiting", cwd=two) == ""
    log = git("reflog", "--format=%gs", "main", cwd=two).splitlines()
    assert log[:2] == ["patchq: b: Edit a.txt", "patchq: a: Edit a.txt"]
    assert git("status", "--porcelain", cwd=two) == ""


def test_the_upper_alone_is_refused_and_the_lower_alone_leaves_it(two: Path) -> None:
    before = tip(two)
    refused = patchq("accept", "b", cwd=two, code=1)
    assert "b is on top of a, which waits for review" in refused.err
    assert "patchq accept --stack b" in refused.err
    assert (tip(two), states(two, "a", "b")) == (before, ["proposed", "proposed"])
    commit = told(two, "b")["commit"]
    patchq("accept", "a", cwd=two)
    stands(two, "b", None)
    assert told(two, "b")["commit"] == commit
    patchq("accept", "b", cwd=two)
    assert tip(two) == commit


def test_what_stands_on_a_discarded_one_says_so_and_does_not_land(two: Path) -> None:
    send(two, "c", says("line 9", "nine"), "b")
    stands(two, "c", "b")
    patchq("discard", "a", cwd=two)
    for id in "bc":
        (problem,) = moved(two, id)
        assert "a is discarded" in problem["message"]
        for words in (["accept", id], ["accept", "--stack", id]):
            result = patchq(*words, cwd=two, code=1)
            assert "a is discarded" in result.err
    now = [told(two, id) for id in "bc"]
    patchq("run", cwd=two)
    assert now == [told(two, id) for id in "bc"], "it is said once"
    assert "five" not in (two / "a.txt").read_text()


def test_the_reason_is_what_is_gone_below_not_another_warning(repo: Path) -> None:
    send(repo, "a", says("line 5", "five"))
    send(repo, "b", block("b.txt", "line 5\n", "five\n"))
    before = tip(repo, "patchq/b")
    patchq("accept", "a", cwd=repo)
    send(repo, "x", says("five", "FIVE"), "a", "b", more="author: Ann <ann@example.org>\n")
    stands(repo, "x", "b")
    elsewhere = repo.parent / "elsewhere"
    git("worktree", "add", "-q", str(elsewhere), "patchq/b", cwd=repo)
    git("reset", "-q", "--hard", before, cwd=elsewhere)
    patchq("run", cwd=repo)
    (problem,) = moved(repo, "x")
    assert "b is not on top of it yet" in problem["message"]


def why_held(repo: Path, id: str) -> str:
    now = told(repo, id)
    assert now["state"] == "held", now["state"]
    return str(now["problems"][-1]["message"])


def test_a_diamond_waits_until_its_sides_stand_on_each_other(two: Path) -> None:
    send(two, "c", says("line 9", "nine"), "a")
    send(two, "d", says("line 15", "fifteen"), "b", "c")
    stands(two, "c", "a")
    assert "b, c wait side by side" in why_held(two, "d")
    patchq("accept", "--stack", "b", cwd=two)
    stands(two, "c", None)
    patchq("run", cwd=two)
    stands(two, "d", "c")
    patchq("accept", "--stack", "d", cwd=two)
    assert states(two, "a", "b", "c", "d") == ["accepted"] * 4


def test_who_depends_on_a_landed_one_waits_until_the_proposal_follows_it(repo: Path) -> None:
    send(repo, "a", says("line 5", "five"))
    send(repo, "b", block("b.txt", "line 5\n", "five\n"))
    elsewhere = repo.parent / "elsewhere"
    git("worktree", "add", "-q", str(elsewhere), "patchq/b", cwd=repo)
    patchq("accept", "a", cwd=repo)
    send(repo, "x", says("five", "FIVE"), "a", "b")
    assert "b is not on top of it yet" in why_held(repo, "x")
    git("worktree", "remove", str(elsewhere), cwd=repo)
    patchq("run", cwd=repo)
    patchq("run", cwd=repo)
    stands(repo, "x", "b")


def test_the_answer_to_a_lower_one_takes_its_place_below(two: Path) -> None:
    patchq("send-back", "a", "-m", "line 12, too", cwd=two)
    refused = patchq("accept", "--stack", "b", cwd=two, code=1)
    assert "a person asked for changes of a" in refused.err
    send(two, "a2", says("line 5", "five") + says("line 12", "twelve"), more="retries: a\n")
    assert states(two, "a") == ["superseded"]
    stands(two, "a2", None)
    stands(two, "b", "a2")
    assert told(two, "b")["problems"] == []
    patchq("accept", "--stack", "b", cwd=two)
    assert (two / "a.txt").read_text().count("twelve") == 1


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_the_top_merged_by_hand_takes_those_below(two: Path, how: str) -> None:
    commit_files(two, {"b.txt": "moved\n"})
    if how == "merge":
        git("merge", "-q", "--no-edit", "patchq/b", cwd=two)
    else:
        git("checkout", "-q", "--detach", "patchq/b", cwd=two)
        git("rebase", "-q", "main", cwd=two)
        git("update-ref", "refs/heads/main", "HEAD", cwd=two)
        git("checkout", "-q", "main", cwd=two)
    patchq("run", cwd=two)
    assert states(two, "a", "b") == ["accepted", "accepted"]
    assert git("for-each-ref", "refs/patchq/waiting", "refs/heads/patchq", cwd=two) == ""
    assert patchq("fsck", cwd=two).code == 0


def test_death_while_a_stack_is_accepted_is_put_right(two: Path) -> None:
    before = tip(two)
    for step in (0, 1, 3, 5):
        repo = two.with_name(f"at-{step}")
        shutil.copytree(two, repo, symlinks=True)
        die(repo, step, "accept", "--stack", "b")
        patchq("run", cwd=repo)
        if step < 3:  # not all marks were there
            assert (tip(repo), states(repo, "a", "b")) == (before, ["proposed", "proposed"]), step
            stands(repo, "b", "a")
            continue
        assert states(repo, "a", "b") == ["accepted", "accepted"], step
        landed = [told(repo, id)["commit"] for id in "ab"]
        assert landed == [tip(repo, "main^"), tip(repo)], step
        assert git("for-each-ref", "refs/patchq/waiting", "refs/heads/patchq", cwd=repo) == ""
        assert git("status", "--porcelain", cwd=repo) == ""
