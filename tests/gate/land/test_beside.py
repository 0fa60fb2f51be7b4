"""Somebody commits to the target while a group of batches is decided on, or lands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchq.gate.land import worker
from patchq.gate.pipeline.session import Session
from tests.helpers.command import block, drop, report
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.sessions import opened

NAMES = ("a", "p", "b", "q", "c")
PROPOSED = ("p", "q")
SETTINGS = "mode: auto\npaths:\n  review: [p.txt, q.txt]\n"
LANDING = {"local": "", "remote": "landing:\n  remote: origin\n"}


@pytest.fixture(params=LANDING)
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A daemon in auto mode, before which lie five responses; `p` and `q` are for review.  The
    target is checked out nowhere."""
    repo = make_repo(tmp_path / "repo", {f"{name}.txt": "one\n" for name in NAMES})
    git("checkout", "-q", "--detach", cwd=repo)
    git("clone", "-q", "--bare", "repo", "hub.git", cwd=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
    session = opened(repo, SETTINGS + LANDING[request.param])
    session.queue.acquire()
    drop(repo / ".patchq", {f"{name}.md": block(f"{name}.txt", "one\n", "1\n") for name in NAMES})
    yield session
    session.queue.close()


def home_of(session: Session) -> Path:
    """Where the branches are."""
    repo = session.queue_root.parent
    return repo.parent / "hub.git" if session.branches.remote else repo


def committing(session: Session, at: int) -> Session:
    """The same, beside somebody who commits before that decision, the first of which is 1."""
    repo, count = home_of(session), 0

    def beside() -> None:
        nonlocal count
        count += 1
        if count == at:
            commit = git("commit-tree", "main^{tree}", "-p", "main", "-m", "By hand", cwd=repo)
            git("update-ref", "refs/heads/main", commit, cwd=repo)

    return replace(session, pulse=beside)


@pytest.mark.parametrize("at", range(1, 8))
def test_each_lands_once_and_as_its_report_says(session: Session, at: int) -> None:
    repo = home_of(session)
    beside = committing(session, at)
    while worker.turn(beside, lambda told: None):
        pass
    told = {name: report(session.queue_root, name) for name in NAMES}
    assert {name: told[name]["state"] for name in NAMES} == {
        name: "proposed" if name in PROPOSED else "applied" for name in NAMES
    }
    subjects = git("log", "--format=%H %(trailers:key=Patchq-Batch,valueonly)", "main", cwd=repo)
    landed = [line.split() for line in subjects.splitlines() if " " in line.strip()]
    assert sorted(landed) == sorted([told[n]["commit"], n] for n in NAMES if n not in PROPOSED)
    for name in PROPOSED:
        branch = git("rev-parse", f"patchq/{name}", cwd=repo)
        assert branch == told[name]["commit"]
        git("merge-base", "--is-ancestor", f"{branch}^", "main", cwd=repo)
        assert git("diff", "--name-only", f"{branch}^", branch, cwd=repo) == f"{name}.txt"
