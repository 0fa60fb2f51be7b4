"""A push arrives that its worker began before another one took its lane over: judged by the remote,
what is there is told of, once, and what is told is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from msgspec.structs import replace

from patchq.gate.errors import InDoubt
from patchq.gate.git.branches import Branches, BranchMove, Moved
from patchq.gate.land import worker
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.postgres.engine import PostgresQueue
from patchq.gate.report.message import trailers
from patchq.gate.report.schema import Report
from tests.helpers.command import block
from tests.helpers.gitrepo import git, make_repo
from tests.helpers.sessions import opened

SETTINGS = "mode: {mode}\nlanding:\n  remote: origin\n"
RESPONSES = {
    "x.md": block("a.txt", "two\n", "2\n"),
    "y.md": block("b.txt", "two\n", "2\n"),
    "z.md": block("new.txt", "", "new\n"),
}
OTHERWISE = {
    "alike": "",
    "refused": "paths:\n  deny: [a.txt, b.txt, new.txt]\n",
    "proposed": "paths:\n  review: [a.txt, b.txt, new.txt]\n",
    "one refused": "paths:\n  deny: [a.txt]\n",
    "last refused": "paths:\n  deny: [new.txt]\n",
}
"""How the successor's own rules have it decide."""


class Frozen(Exception):
    """The worker goes no further."""


class Slow:
    """The branches of a worker that is frozen right before its push, which may arrive later."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches
        self.moves: Sequence[BranchMove] = ()

    def land(self, moves: Sequence[BranchMove]) -> list[Moved]:
        self.moves = moves
        raise Frozen

    def arrive(self) -> None:
        with suppress(InDoubt):
            self._branches.land(self.moves)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._branches, name)


class Watched:
    """Branches beside which a push arrives before the call number `at` of a method."""

    def __init__(self, branches: Branches, slow: Slow, method: str, at: int | None) -> None:
        self._branches, self._slow, self._method, self._at = branches, slow, method, at
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._count += 1
            if self._count == self._at:
                self._slow.arrive()
        return getattr(self._branches, name)


@dataclass
class Cluster:
    root: Path
    database: str
    sessions: list[Session]

    @property
    def hub(self) -> Path:
        return self.root / "hub.git"

    def worker(self, name: str, mode: str, more: str = "") -> Session:
        git("clone", "-q", "hub.git", name, cwd=self.root)
        queue = PostgresQueue(self.database, name=name, lane_of=lambda data, name: "main")
        session = opened(self.root / name, SETTINGS.format(mode=mode) + more, queue=queue)
        self.sessions.append(session)
        return session

    def frozen(self, mode: str) -> Slow:
        """What a worker was about to push when it was cut off from the database."""
        session = self.worker("first", mode)
        slow = Slow(session.branches)
        for name, text in RESPONSES.items():
            session.queue.submit(text.encode(), name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "_GROUP_SECONDS", 60.0)  # all of them, however slow it is
            with pytest.raises(Frozen):
                worker.turn(replace(session, branches=cast(Branches, slow)), lambda told: None)
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(holder(session_key(number)), 5000) from sessions"
            )
        return slow

    def judge(self, session: Session, told: Sequence[Report]) -> None:
        """By the remote's trailers and branches against the reports."""
        session.branches.refresh()
        there: list[tuple[str, str]] = []
        for commit in session.repo.commits(session.branches.tip("main") or ""):
            there += [(id, commit.oid) for id in trailers(commit.message).get("Patchq-Batch", [])]
        reports = {name[:1]: session.queue.load(name[:1]) for name in RESPONSES}
        assert sorted(report.id for report in told) == sorted(reports), "told of once"
        for id, report in reports.items():
            assert report
            at = session.branches.tip(f"patchq/{id}")
            landed = [commit for batch, commit in there if batch == id]
            assert landed == ([report.commit] if report.state == "applied" else [])
            assert at == (report.commit if report.state == "proposed" else None)


@pytest.fixture
def cluster(tmp_path: Path, database: str) -> Iterator[Cluster]:
    make_repo(tmp_path / "seed", {f"{name}.txt": "one\ntwo\n" for name in "ab"})
    git("clone", "-q", "--bare", "seed", "hub.git", cwd=tmp_path)
    cluster = Cluster(tmp_path, database, [])
    yield cluster
    for session in cluster.sessions:
        cast(PostgresQueue, session.queue).close()
        session.close()


def give_verdicts(session: Session) -> list[Report]:
    told: list[Report] = []
    worker.start(session, told.append)
    while worker.turn(session, told.append):
        pass
    return told


def beside(session: Session, slow: Slow, method: str, at: int | None) -> Session:
    return replace(session, branches=cast(Branches, Watched(session.branches, slow, method, at)))


@pytest.mark.parametrize("mode", ["auto", "review"])
@pytest.mark.parametrize("rules", OTHERWISE)
@pytest.mark.parametrize("at", [1, 2, None], ids=lambda at: f"at look {at}" if at else "behind")
def test_a_late_push_is_told_of_as_it_is(
    cluster: Cluster, mode: str, rules: str, at: int | None
) -> None:
    """It arrives before a look of the successor at the remote, or once all is told."""
    slow = cluster.frozen(mode)
    session = cluster.worker("second", mode, OTHERWISE[rules])
    told = give_verdicts(beside(session, slow, "refresh", at))
    if at is None:
        slow.arrive()
    cluster.judge(session, told)
    assert len(told) == len(RESPONSES)


DECLINES = """#!/bin/sh
[ -e declined ] && exit 0
touch declined
exit 1
"""


@pytest.mark.parametrize("seconds", [60.0, 0.0], ids=["one group", "one by one"])
@pytest.mark.parametrize(
    ("rules", "method"),
    [*((rules, "refresh") for rules in OTHERWISE), ("last refused", "land")],
)
def test_what_lands_after_it_was_asked_for_gets_its_verdict_at_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, rules: str, method: str, seconds: float
) -> None:
    """The remote declines what the successor pushes again, and then takes it of the one before:
    before the successor looks again, or pushes what it decided itself."""
    slow = cluster.frozen("auto")
    session = cluster.worker("second", "auto", OTHERWISE[rules])
    hook = cluster.hub / "hooks" / "pre-receive"
    hook.write_text(DECLINES)
    hook.chmod(0o755)
    monkeypatch.setattr(worker, "_GROUP_SECONDS", seconds)
    told = give_verdicts(beside(session, slow, method, 2))
    assert (cluster.hub / "declined").exists()
    cluster.judge(session, told)
    assert {report.state for report in told} == {"applied"}
