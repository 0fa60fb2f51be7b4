"""Workers and the database fail at any moment, again and again; judged from outside, by the
trailers on the remote against the reports: nothing is lost, nothing is there twice, no report is
wrong."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from time import sleep

import psycopg
import pytest

from patchq.gate.queue.postgres.schema import migrate
from tests.gate.service.test_cluster import (
    CONFIG,
    FILES,
    everything,
    judged,
    landed,
    machines,
    states,
)
from tests.helpers import postgres
from tests.helpers.command import block, drop, patchq
from tests.helpers.forking import Fork
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
STATE = {"response": "applied", "revert": "reverted"}


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
    assert "reverted already" in patchq("revert", "x", cwd=feeder, code=2).err


@pytest.mark.parametrize("landing", [pytest.param("response", marks=pytest.mark.slow), "revert"])
def test_a_remote_that_goes_in_mid_push_is_waited_for(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, landing: str
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", machines.database)
    feeder, hook = machines.clone("feeder"), machines.hub / "hooks" / "pre-receive"
    gone = machines.hub.with_name("gone.git")
    machines.start("feeder", "watch")
    worker = machines.start("w1", "worker", "--name", "w1")
    if landing == "revert":
        drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
        machines.soon(lambda: states(machines, "x") == ["applied"])
    hook.write_text(f"#!/bin/sh\nmv {machines.hub} {gone}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    with (feeder / "said").open("wb") as said:
        if landing == "revert":
            words = [sys.executable, "-m", "patchq", "revert", "x"]
            asks = subprocess.Popen(words, cwd=feeder, stdout=said, stderr=said)
        else:
            drop(feeder / ".patchq", {"x.md": block("a.txt", "two\n", "2\n")})
        machines.soon(lambda: "cannot be told" in machines.log("w1"))
        (gone / "hooks" / "pre-receive").unlink()
        gone.rename(machines.hub)
        if landing == "revert":
            assert asks.wait(60) == 0, (feeder / "said").read_text() + machines.log("w1")
    machines.soon(lambda: states(machines, "x") == [STATE[landing]])
    assert landed(machines) == ["x", "revert-x"][: 1 + (landing == "revert")]
    assert worker.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_storm_of_failures_loses_nothing(tmp_path: Path, seed: int) -> None:
    chance, numbers = random.Random(seed), count(1)
    with postgres.server() as server:
        with psycopg.connect(server.conninfo) as connection:
            migrate(connection)
        machines = Machines(tmp_path, server.conninfo, FILES, CONFIG)
        git("branch", "release/1", cwd=machines.hub)

        def another() -> Fork:
            name = f"w{next(numbers)}"
            return machines.start(name, "worker", "--name", name)

        feeder, workers = machines.start("feeder", "watch"), [another(), another()]

        def tended() -> bool:
            """What ends since there is no database when it starts, its supervisor starts again."""
            nonlocal feeder
            if feeder.poll() is not None:
                feeder = machines.start("feeder", "watch")
            for place, worker in enumerate(workers):
                if worker.poll() is not None:
                    workers[place] = another()
            return everything(machines, ids)

        try:
            machines.soon(lambda: all("serves" in machines.log(name) for name in ("w1", "w2")))
            queue, ids = machines.clone("feeder") / ".patchq", list[str]()
            for turn in range(10):
                some = {f"t{turn}n{n}.md": _response(chance, turn, n, ids) for n in range(4)}
                drop(queue, some)
                tended()
                ids += [name.removesuffix(".md") for name in some]
                sleep(chance.uniform(0.05, 1.2))
                victim = chance.randrange(2)
                deed = chance.choice(["kill", "kill", "freeze", "freeze", "feeder", "database"])
                if deed == "kill":
                    workers[victim].kill()
                    workers[victim] = another()
                elif deed == "freeze":  # for longer than `takeover_seconds`, or shorter
                    workers[victim].send_signal(signal.SIGSTOP)
                    sleep(chance.choice([0.3, 2.5]))
                    workers[victim].send_signal(signal.SIGCONT)
                elif deed == "feeder":
                    feeder.kill()
                    feeder.wait()
                    feeder = machines.start("feeder", "watch")
                else:
                    server.end(signal.SIGKILL)
                    sleep(chance.uniform(0, 0.5))
                    server.start()
            machines.soon(tended)
            judged(machines, ids, ("main", "release/1"))
            assert not [log for log in tmp_path.glob("*/log") if "Traceback" in log.read_text()]
        finally:
            machines.close()


def _response(chance: random.Random, turn: int, number: int, ids: list[str]) -> str:
    """New files, edits of which one alone can land, and what depends on others."""
    header = "---\ntarget: release/1\n---\n" if chance.random() < 0.3 else ""
    if not header and ids and chance.random() < 0.3:
        header = f"---\ndepends_on: [{chance.choice(ids)}]\n---\n"
    if chance.random() < 0.2:
        return header + block(f"{chance.choice('abc')}.txt", "two\n", f"{turn} {number}\n")
    return header + block(f"new-{turn}-{number}.txt", "", f"{turn} {number}\n")
