"""Workers and the database fail at any moment, again and again; judged from outside, by the
trailers on the remote against the reports: nothing is lost, nothing is there twice, no report is
wrong."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from patchq.gate.api import Gate
from patchq.gate.errors import DatabaseFault
from patchq.gate.queue.postgres.engine import PostgresQueue
from patchq.gate.report.schema import Report
from patchq.gate.service.feed import Feeder
from tests.gate.service.test_cluster import LAND, QUEUE, cases, landed, machines, states
from tests.helpers import claims
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import git
from tests.helpers.machines import Machines

__all__ = ["machines"]
POINTS = [
    *((f"{QUEUE}.{name}", "behind") for name in ("adopt", "intend", "publish", "rewrite", "done")),
    (f"{QUEUE}.done", "before"),
    (LAND, "before"),
    (LAND, "behind"),
]
"""Where a worker ends while it takes a batch back."""


@pytest.mark.parametrize(("point", "when"), cases(POINTS, [(LAND, "behind")]))
def test_a_revert_whose_worker_ends_is_done_once(machines: Machines, point: str, when: str) -> None:
    feeder = machines.clone("feeder")
    machines.start("feeder", "watch")
    one = machines.start("w1", "worker", "--name", "w1")
    drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "x") == ["applied"])
    one.kill()
    two = machines.start("w2", "worker", "--name", "w2", dies=(point, when, signal.SIGKILL))
    asks = machines.start("feeder", "revert", "x")
    machines.soon(lambda: two.poll() is not None or asks.poll() is not None)
    machines.start("w3", "worker", "--name", "w3")
    assert asks.wait(60) == 0, machines.log("feeder") + machines.log("w3")
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


def test_a_remote_that_goes_in_mid_push_is_waited_for(machines: Machines) -> None:
    feeder, hook = machines.clone("feeder"), machines.hub / "hooks" / "pre-receive"
    gone = machines.hub.with_name("gone.git")
    machines.start("feeder", "watch")
    worker = machines.start("w1", "worker", "--name", "w1")
    drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
    machines.soon(lambda: states(machines, "x") == ["applied"])
    hook.write_text(f"#!/bin/sh\nmv {machines.hub} {gone}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    asks = machines.start("feeder", "revert", "x")
    machines.soon(lambda: "it is unknown if" in machines.log("w1"))
    (gone / "hooks" / "pre-receive").unlink()
    gone.rename(machines.hub)
    assert asks.wait(60) == 0, machines.log("feeder") + machines.log("w1")
    machines.soon(lambda: states(machines, "x") == ["reverted"])
    assert landed(machines) == ["x", "revert-x"]
    assert worker.poll() is None
