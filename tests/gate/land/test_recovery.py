"""A daemon died somewhere in a landing, and a person did something before the next one began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patchq.gate.land import landing, worker
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session, Tips
from patchq.gate.review import restack
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import git, make_repo, shell
from tests.helpers.sessions import opened

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
RESPONSES = {"x.md": block("a.txt", "two\n", "2\n"), "y.md": block("b.txt", "b\n", "B\n")}
TARGET = "trunk"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """`main` is checked out; the daemon serves `trunk`."""
    repo = make_repo(tmp_path / "repo", FILES)
    git("branch", TARGET, cwd=repo)
    return repo


def begin(repo: Path, mode: str = "auto") -> Session:
    """What a daemon has when it begins."""
    session = opened(repo, f"mode: {mode}\n", TARGET)
    session.queue.acquire()
    return session


def decide(session: Session, responses: dict[str, str]) -> list[Decision]:
    """Take the responses, and record the verdicts that are intended."""
    drop(session.queue_root, responses)
    tips, decisions = Tips(session), []
    for claim in session.queue.claim(9):
        decision = process(claim, session, tips)
        assert decision.commit
        if decision.state == "applied":
            tips.move(TARGET, decision.commit)
        told = decision.report
        session.queue.intend(claim, told)
        decisions.append(decision)
    return decisions


def die_before_the_move(repo: Path) -> list[str]:
    """The commits of the batches, whose objects are there."""
    session = begin(repo)
    decisions = decide(session, RESPONSES)
    flush(session)
    session.queue.close()
    return [str(decision.commit) for decision in decisions]


def die_after_the_move(repo: Path, mode: str = "auto") -> str:
    """The commit that landed and was not told of."""
    session = begin(repo, mode)
    (decision,) = decide(session, {"x.md": RESPONSES["x.md"]})
    commit = str(decision.commit)
    landing.land([decision], session)
    session.queue.close()
    return commit


def recover(repo: Path, mode: str = "auto") -> dict[str, Any]:
    """The next daemon begins; the report on `x`."""
    session = begin(repo, mode)
    worker.start(session, lambda told: None)
    restack.settle(session)
    session.queue.close()
    assert list((repo / ".patchq/active").iterdir()) == []
    return report(repo / ".patchq", "x")


def batches(repo: Path) -> list[str]:
    """The batches in the target's history, the newest first."""
    form = "--format=%(trailers:key=Patchq-Batch,valueonly,separator=%x2C)"
    return git("log", form, TARGET, cwd=repo).split()


def test_reflog_lines_of_a_move_that_did_not_happen_prove_nothing(repo: Path) -> None:
    first, second = die_before_the_move(repo)
    base = git("rev-parse", TARGET, cwd=repo)
    with (repo / ".git/logs/refs/heads" / TARGET).open("a") as log:
        log.writelines(
            f"{old} {new} A <a@example.org> 1 +0000\tpatchq\n"
            for old, new in ((base, first), (first, second))
        )
    recover(repo)
    assert batches(repo) == ["y", "x"]


AMEND = "git checkout -q trunk; git commit -q --amend --no-edit --author='B <b@example.org>'\n"
REBASE = "git commit -q --allow-empty -m Mine; git rebase -q main trunk\n"
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now\n"
"""As time does to what no ref holds."""


@pytest.mark.parametrize(
    "script",
    ["", AMEND, REBASE, AMEND + FORGET, REBASE + FORGET],
    ids=["nothing", "amend", "rebase", "amend-gc", "rebase-gc"],
)
def test_ref_that_moved_is_told_of(repo: Path, script: str) -> None:
    die_after_the_move(repo)
    shell(script, repo)
    told = recover(repo)
    assert told["state"] == "applied"
    assert batches(repo) == ["x"]
    git("merge-base", "--is-ancestor", told["commit"], TARGET, cwd=repo)


TAKEN_AWAY = {
    "reset": "git branch -f trunk main",
    "rename": "git branch -m trunk other; git branch trunk main",
    # Also to a repository that has it for longer than this one.
    "push": "git init -q --bare ../hub.git; git remote add origin ../hub.git"
    "; git push -q origin trunk; git fetch -q origin; git branch -q -D trunk"
    "; git branch trunk main",
    "visit": "git checkout -q trunk; git checkout -q main; git branch -q -D trunk"
    "; git branch trunk main",
}


@pytest.mark.parametrize("way", TAKEN_AWAY)
def test_g02_what_a_person_took_away_is_not_applied_again(repo: Path, way: str) -> None:
    commit = die_after_the_move(repo)
    shell(TAKEN_AWAY[way], repo)
    told = recover(repo)
    assert (told["state"], told["commit"]) == ("applied", commit)
    assert batches(repo) == []


DELETE = "git branch -q -D patchq/x\n"
PICK = "git checkout -q trunk; git commit -q --allow-empty -m Mine; git cherry-pick patchq/x\n"
WITHOUT_WAITING = "git update-ref -d refs/patchq/waiting/x\n"


@pytest.mark.parametrize(
    ("script", "state", "there"),
    [
        ("", "proposed", True),
        (WITHOUT_WAITING, "proposed", True),
        ("git checkout -q patchq/x; git commit -q --amend -m Mine", "proposed", True),
        (DELETE, "discarded", False),
        ("git checkout -q trunk; git merge -q --no-ff --no-edit patchq/x", "accepted", False),
        (PICK + DELETE + WITHOUT_WAITING, "accepted", False),
    ],
    ids=["nothing", "no-record", "change", "delete", "merge", "pick-delete"],
)
def test_what_a_person_did_to_a_proposal_stands(
    repo: Path, script: str, state: str, there: bool
) -> None:
    die_after_the_move(repo, "review")
    shell(script, repo)
    before = refs_below(repo, "refs/heads/patchq")
    assert recover(repo, "review")["state"] == state
    assert refs_below(repo, "refs/heads/patchq") == (before if there else "")
    assert bool(refs_below(repo, "refs/patchq/waiting")) == there


def refs_below(repo: Path, prefix: str) -> str:
    return git("for-each-ref", "--format=%(refname) %(objectname)", prefix, cwd=repo)


def test_held_batch_that_a_person_discards_meanwhile_does_not_land(repo: Path) -> None:
    (repo / ".git/BISECT_START").write_text(f"{TARGET}\n")
    session = begin(repo)
    drop(repo / ".patchq", RESPONSES)
    worker.turn(session, lambda told: None)
    (repo / ".git/BISECT_START").unlink()
    tips, decisions = Tips(session), []
    for claim in session.queue.held():
        decisions.append(process(claim, session, tips))
        tips.move(TARGET, str(decisions[-1].commit))
    patchq("discard", "x", cwd=repo)
    landed, again = landing.land(decisions, session)
    assert (landed, [decision.id for decision in again]) == ([], ["y"])
    worker.work([decision.claim for decision in again], session, lambda told: None)
    session.queue.close()
    assert report(repo / ".patchq", "x")["state"] == "discarded"
    assert report(repo / ".patchq", "y")["state"] == "applied"
    assert batches(repo) == ["y"]
    assert list((repo / ".patchq/active").iterdir()) == []
