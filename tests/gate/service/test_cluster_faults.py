"""Workers and the database fail at any moment, again and again; judged from outside, by the
trailers on the remote against the reports: nothing is lost, nothing is there twice, no report is
wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing

import pytest

from patchq.gate.api import Gate
from patchq.gate.errors import DatabaseFault
from patchq.gate.queue.postgres.engine import PostgresQueue
from patchq.gate.report.schema import Report
from patchq.gate.service.feed import Feeder
from tests.gate.service.test_cluster import (
    landed,
    machines,
    states,
)
from tests.helpers import claims
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import git
from tests.helpers.machines import Machines

__all__ = ["machines"]
LAND = "patchq.gate.git.branches.remote:RemoteBranches.land"
POINTS = [
    ("patchq.gate.queue.postgres.engine:PostgresQueue.adopt", "behind"),
    ("patchq.gate.queue.postgres.engine:PostgresQueue.intend", "behind"),
    (LAND, "before"),
    (LAND, "behind"),
    ("patchq.gate.queue.postgres.engine:PostgresQueue.publish", "behind"),
    ("patchq.gate.queue.postgres.engine:PostgresQueue.rewrite", "behind"),
    ("patchq.gate.queue.postgres.engine:PostgresQueue.done", "before"),
    ("patchq.gate.queue.postgres.engine:PostgresQueue.done", "behind"),
]
"""Where a worker ends while it takes a batch back."""


@pytest.mark.parametrize(
    ("point", "when"),
    [
        pytest.param(
            *(point, when),
            id=f"{when} {point.rpartition('.')[2]}",
            marks=[] if (point, when) == (LAND, "behind") else [pytest.mark.slow],
        )
        for point, when in POINTS
    ],
)
def test_a_revert_whose_worker_ends_is_done_once(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, point: str, when: str
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", machines.database)
    feeder = machines.clone("feeder")
    machines.start("feeder", "watch")
    one = machines.start("w1", "worker", "--name", "w1")
    drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "x") == ["applied"])
    one.kill()
    machines.start_dying("w2", point, when, signal.SIGKILL)
    with (feeder / "said").open("wb") as said:
        asks = subprocess.Popen(
            [sys.executable, "-m", "patchq", "revert", "x"], cwd=feeder, stdout=said, stderr=said
        )  # fmt: skip
    machines.soon(lambda: machines.running[-1].poll() is not None or asks.poll() is not None)
    machines.start("w3", "worker", "--name", "w3")
    assert asks.wait(60) == 0, (feeder / "said").read_text() + machines.log("w3")
    assert landed(machines) == ["x", "revert-x"]
    assert git("show", "main:a.txt", cwd=machines.hub) == "one\ntwo\nthree"
    machines.soon(lambda: states(machines, "x") == ["reverted"])
    assert "reverted" in patchq("revert", "x", cwd=feeder, code=2).err


def _away(changes: object) -> None:
    raise DatabaseFault("the database is away")


def test_verdict_of_which_the_database_was_not_told_is_published_once(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Report] = []
    monkeypatch.setenv("PATCHQ_DATABASE", machines.database)
    with (
        Gate.open(machines.clone("feeder")) as gate,
        closing(PostgresQueue(machines.database)) as worker,
    ):
        feeder = Feeder(gate.session(), machines.root, reports.append, lasting=False)
        feeder.acquire()
        feeder.connect()
        drop(feeder.session.queue_root, {"x.md": block("a.txt", "two\n", "2\n")})
        feeder.decide()
        (claim,) = worker.claim(1)
        id = worker.reserve(claim, "x")
        worker.publish(claim, claims.report(claim, id, "rejected"))
        with monkeypatch.context() as broken:
            broken.setattr(feeder.entries, "seen", _away)
            with pytest.raises(DatabaseFault) as fault:
                feeder.decide()
        feeder.lose(fault.value)
        feeder.decide()
        assert feeder.lanes() == set()
        assert [report.id for report in reports] == ["x"]
        assert feeder.entries.changes() == []
        feeder.ends.close()


def test_a_remote_that_goes_in_mid_push_is_waited_for(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", machines.database)
    feeder, hook = machines.clone("feeder"), machines.hub / "hooks" / "pre-receive"
    gone = machines.hub.with_name("gone.git")
    machines.start("feeder", "watch")
    worker = machines.start("w1", "worker", "--name", "w1")
    drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "x") == ["applied"])
    hook.write_text(f"#!/bin/sh\nmv {machines.hub} {gone}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    with (feeder / "said").open("wb") as said:
        words = [sys.executable, "-m", "patchq", "revert", "x"]
        asks = subprocess.Popen(words, cwd=feeder, stdout=said, stderr=said)
        machines.soon(lambda: "it is unknown if" in machines.log("w1"))
        (gone / "hooks" / "pre-receive").unlink()
        gone.rename(machines.hub)
        assert asks.wait(60) == 0, (feeder / "said").read_text() + machines.log("w1")
    machines.soon(lambda: states(machines, "x") == ["reverted"])
    assert landed(machines) == ["x", "revert-x"]
    assert worker.poll() is None
