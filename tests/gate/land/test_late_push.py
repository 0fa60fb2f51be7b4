"""A push arrives that its worker began before another one took its lane over: judged by the remote,
what is there is told of, once, and what is told is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

import psycopg
import pytest

from patchq.gate.errors import InDoubt
from patchq.gate.git.branches import BranchMove
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


@dataclass
class Cluster:
    root: Path
    database: str
    sessions: list[Session]

    def worker(self, name: str, mode: str, more: str = "") -> Session:
        git("clone", "-q", "hub.git", name, cwd=self.root)
        queue = PostgresQueue(self.database, name=name, lane_of=lambda data, name: "main")
        session = opened(self.root / name, SETTINGS.format(mode=mode) + more, queue=queue)
        self.sessions.append(session)
        return session

    def frozen(self, mode: str) -> Callable[[], None]:
        """Return the push of a worker that was cut off from the database right before it."""
        session, moves = self.worker("first", mode), list[BranchMove]()
        real = session.branches.land
        for name, text in RESPONSES.items():
            session.queue.submit(text.encode(), name)

        def land(given: Sequence[BranchMove]) -> None:
            moves.extend(given)
            raise Frozen

        def arrive() -> None:
            with suppress(InDoubt):
                real(moves)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "_GROUP_SECONDS", 60.0)  # all of them, however slow it is
            patch.setattr(session.branches, "land", land)
            with pytest.raises(Frozen):
                worker.turn(session, lambda told: None)
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(holder(session_key(number)), 5000) from sessions"
            )
        return arrive

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


def arrive_before(
    session: Session, method: str, at: int | None, arrive: Callable[[], None]
) -> None:
    """Have a push arrive before the call number `at` of a method of the branches."""
    calls, real = count(1), getattr(session.branches, method)

    def call(*args: object) -> object:
        if next(calls) == at:
            arrive()
        return real(*args)

    setattr(session.branches, method, call)


@pytest.mark.parametrize("mode", ["auto", "review"])
@pytest.mark.parametrize("rules", OTHERWISE)
@pytest.mark.parametrize("at", [1, 2, None], ids=lambda at: f"at look {at}" if at else "behind")
def test_a_late_push_is_told_of_as_it_is(
    cluster: Cluster, mode: str, rules: str, at: int | None
) -> None:
    arrive = cluster.frozen(mode)
    session = cluster.worker("second", mode, OTHERWISE[rules])
    arrive_before(session, "refresh", at, arrive)
    told = give_verdicts(session)
    if at is None:
        arrive()
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
    arrive = cluster.frozen("auto")
    session = cluster.worker("second", "auto", OTHERWISE[rules])
    hook = cluster.root / "hub.git/hooks/pre-receive"
    hook.write_text(DECLINES)
    hook.chmod(0o755)
    monkeypatch.setattr(worker, "_GROUP_SECONDS", seconds)
    arrive_before(session, method, 2, arrive)
    told = give_verdicts(session)
    assert (cluster.root / "hub.git/declined").exists()
    cluster.judge(session, told)
    assert {report.state for report in told} == {"applied"}
