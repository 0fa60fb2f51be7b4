"""A daemon died somewhere in a landing, and a person did something before the next one began."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.helpers.gitrepo import commit_files, git, make_repo
from tests.helpers.sessions import opened

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
RESPONSES = {"x.md": block("a.txt", "two\n", "2\n"), "y.md": block("b.txt", "b\n", "B\n")}
TARGET = "trunk"

Step = Callable[[Path], None]
"""What a person does in the repository."""


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


def amend(repo: Path) -> None:
    git("checkout", "-q", TARGET, cwd=repo)
    git("commit", "-q", "--amend", "--no-edit", "--author=B <b@example.org>", cwd=repo)


def rebase(repo: Path) -> None:
    commit_files(repo, {"mine.txt": "mine\n"})
    git("rebase", "-q", "main", TARGET, cwd=repo)


def forget(repo: Path) -> None:
    """As time does to what no ref holds."""
    git("reflog", "expire", "--expire=now", "--all", cwd=repo)
    git("gc", "-q", "--prune=now", cwd=repo)


@pytest.mark.parametrize(
    "steps",
    [[], [amend], [rebase], [amend, forget], [rebase, forget]],
    ids=["nothing", "amend", "rebase", "amend-gc", "rebase-gc"],
)
def test_ref_that_moved_is_told_of(repo: Path, steps: list[Step]) -> None:
    die_after_the_move(repo)
    for step in steps:
        step(repo)
    told = recover(repo)
    assert told["state"] == "applied"
    assert batches(repo) == ["x"]
    git("merge-base", "--is-ancestor", told["commit"], TARGET, cwd=repo)


def reset(repo: Path) -> None:
    git("branch", "-f", TARGET, "main", cwd=repo)


def rename(repo: Path) -> None:
    git("branch", "-m", TARGET, "other", cwd=repo)
    git("branch", TARGET, "main", cwd=repo)


def push(repo: Path) -> None:
    """Also to a repository that has it for longer than this one."""
    remote = repo.with_name("remote.git")
    git("init", "-q", "--bare", str(remote), cwd=repo)
    git("push", "-q", str(remote), TARGET, cwd=repo)
    git("remote", "add", "origin", str(remote), cwd=repo)
    git("fetch", "-q", "origin", cwd=repo)
    git("branch", "-D", "-q", TARGET, cwd=repo)
    git("branch", TARGET, "main", cwd=repo)


def visit(repo: Path) -> None:
    git("checkout", "-q", TARGET, cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    git("branch", "-D", "-q", TARGET, cwd=repo)
    git("branch", TARGET, "main", cwd=repo)


@pytest.mark.parametrize("step", [reset, rename, push, visit])
def test_g02_what_a_person_took_away_is_not_applied_again(repo: Path, step: Step) -> None:
    commit = die_after_the_move(repo)
    step(repo)
    told = recover(repo)
    assert (told["state"], told["commit"]) == ("applied", commit)
    assert batches(repo) == []


def delete(repo: Path) -> None:
    git("branch", "-D", "-q", "patchq/x", cwd=repo)


def merge(repo: Path) -> None:
    git("checkout", "-q", TARGET, cwd=repo)
    git("merge", "-q", "--no-ff", "--no-edit", "patchq/x", cwd=repo)


def pick(repo: Path) -> None:
    """Land it as another commit."""
    git("checkout", "-q", TARGET, cwd=repo)
    commit_files(repo, {"mine.txt": "mine\n"})
    git("cherry-pick", "patchq/x", cwd=repo)


def change(repo: Path) -> None:
    git("checkout", "-q", "patchq/x", cwd=repo)
    git("commit", "-q", "--amend", "-m", "Mine", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)


def without_waiting(repo: Path) -> None:
    git("update-ref", "-d", "refs/patchq/waiting/x", cwd=repo)


@pytest.mark.parametrize(
    ("steps", "state", "there"),
    [
        ([], "proposed", True),
        ([without_waiting], "proposed", True),
        ([change], "proposed", True),
        ([delete], "discarded", False),
        ([merge], "accepted", False),
        ([pick, delete, without_waiting], "accepted", False),
    ],
    ids=["nothing", "no-record", "change", "delete", "merge", "pick-delete"],
)
def test_what_a_person_did_to_a_proposal_stands(
    repo: Path, steps: list[Step], state: str, there: bool
) -> None:
    die_after_the_move(repo, "review")
    for step in steps:
        step(repo)
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
