"""What the queue in PostgreSQL promises beyond the contract: lanes, take-over, fencing, outages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
import pytest

from bench.cluster.server import running as database_server
from patchq.gate.errors import DatabaseFault, LaneLost
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.postgres.database import migrate
from patchq.gate.queue.postgres.engine import PostgresQueue
from tests.helpers.claims import finish, hold, report
from tests.helpers.ending import line_of, running, until

Open = Callable[..., PostgresQueue]
OWNER = """
import sys, time
from patchq.gate.queue.postgres.engine import PostgresQueue
queue = PostgresQueue(sys.argv[1], name="owner", beats=True, takeover_seconds=0.4)
print(len(queue.claim(9)), flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    try:
        exec(sys.argv[3])
        print("written")
    except Exception as error:
        print(type(error).__name__)
"""
ZOMBIE = """
from patchq.core.model.values import Source
from patchq.gate.queue import Claim
from patchq.gate.report.schema import Report, SourceEntry
claim = Claim(f"{1:016x}", Source("x.md", "0" * 64, 3), b"a 1")
source = SourceEntry(name="x.md", sha256="0" * 64, bytes=3)
report = Report(id="zombie", state="rejected", source=source)
"""


STILL = Bell()  # rung by none of these tests


@pytest.fixture
def again(database: str) -> Iterator[Open]:
    opened: list[PostgresQueue] = []

    def another(**more: object) -> PostgresQueue:
        more["lane_of"] = lambda data, name: data.decode().partition(" ")[0]
        opened.append(PostgresQueue(database, **more))  # type: ignore[arg-type]
        return opened[-1]

    yield another
    for queue in opened:
        queue.close()


def test_a_lane_has_one_owner_and_lanes_spread(again: Open) -> None:
    feeder, one, two = again(), again(), again()
    for text in (b"a 1", b"b 1", b"a 2", b"b 2"):
        feeder.submit(text, "x.md")
    assert [claim.data for claim in one.claim(9)] == [b"a 1", b"a 2"]
    assert [claim.data for claim in two.claim(9)] == [b"b 1", b"b 2"]
    feeder.submit(b"a 3", "x.md")
    assert two.claim(9) == []
    assert [claim.data for claim in one.claim(9)] == [b"a 3"]


def test_a_worker_owns_no_lane_that_its_patterns_leave_out(again: Open) -> None:
    feeder, worker = again(), again(lanes=["release/*"])
    feeder.submit(b"main 1", "x.md")
    feeder.submit(b"release/2 1", "x.md")
    assert [claim.data for claim in worker.claim(9)] == [b"release/2 1"]
    assert worker.claim(9) == []


def test_a_lane_in_which_nothing_is_left_is_free_while_its_owner_waits(again: Open) -> None:
    one, two = again(), again()
    one.submit(b"a 1", "x.md")
    [claim] = one.claim(9)
    one.wait(0, STILL)
    one.submit(b"a 2", "x.md")
    assert two.claim(9) == []
    finish(one, claim)
    one.wait(0, STILL)
    [claim] = two.claim(9)
    hold(two, claim)
    two.wait(0, STILL)
    one.submit(b"a 3", "x.md")
    assert one.claim(9) == [], "the owner of what is held keeps the lane"


def test_a_wait_ends_when_something_comes_or_is_decided_or_rings(again: Open) -> None:
    feeder, worker, other = again(), again(), again(lanes=["b"])
    for queue in (worker, other):
        queue.wait(60, STILL)  # the first one only begins to listen
    feeder.submit(b"a 1", "x.md")
    assert worker.wait(60, STILL)
    [claim] = worker.claim(1)
    feeder.submit(b"b 1", "x.md")
    [held] = other.claim(1)
    other.hold(held, report(held, other.reserve(held, "held"), "held"))
    until(lambda: not other.wait(0, STILL))
    finish(worker, claim)
    assert other.wait(60, STILL), "what it holds may have waited for that"
    with closing(Bell()) as bell:
        threading.Timer(0.05, bell.ring).start()
        until(lambda: not worker.wait(60, bell))


@pytest.mark.parametrize("step", ["intend", "publish"])
def test_a_lost_claim_takes_nothing_from_those_before_it(again: Open, step: str) -> None:
    zombie, other = again(name="zombie"), again()
    for text in (b"a 1", b"a 2"):
        zombie.submit(text, "x.md")
    claims = zombie.claim(9)
    ids = [zombie.reserve(claim, "fix") for claim in claims]
    with psycopg.connect(zombie.store.conninfo, autocommit=True) as taker:
        taker.execute("update responses set session = null where id = %s", (ids[1],))
    together = ExitStack()
    together.enter_context(zombie.together())
    getattr(zombie, step)(claims[0], report(claims[0], ids[0]))
    with pytest.raises(LaneLost), together:
        getattr(zombie, step)(claims[1], report(claims[1], ids[1]))
    assert other.load(ids[1]) is None
    assert bool(other.load(ids[0])) == (step == "publish")


@pytest.mark.parametrize("held", [False, True], ids=["claimed", "held"])
def test_a_lane_whose_owner_died_is_free_once_what_it_had_is_recovered(
    again: Open, held: bool
) -> None:
    one, two = again(), again()
    one.submit(b"a 1", "x.md")
    one.submit(b"a 2", "x.md")
    [claim] = one.claim(1)
    if held:
        hold(one, claim)
    assert not two.lanes.orphaned()
    one.close()
    assert held or two.claim(9) == []
    assert two.lanes.orphaned()
    [back] = two.recover()
    assert (back.data, back.held, two.serves(back)) == (b"a 1", held, True)
    assert not two.lanes.orphaned()
    assert [claim.data for claim in two.claim(9)] == [b"a 2"]


@contextmanager
def owner(database: str, times: int = 0, code: str = "") -> Iterator[subprocess.Popen[str]]:
    words, pipe = [sys.executable, "-c", OWNER, database, str(times), code], subprocess.PIPE
    with running(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert line_of(process.stdout) == "1\n"
        yield process


@pytest.mark.parametrize(("write", "decided"), [("publish", True), ("intend", False)])
def test_a_frozen_owner_that_wakes_writes_nothing(
    again: Open, database: str, write: str, decided: bool
) -> None:
    queue = again(takeover_seconds=0.4)
    queue.submit(b"a 1", "x.md")
    with owner(database, 2, f"{ZOMBIE}queue.{write}(claim, report)") as process:
        os.kill(process.pid, signal.SIGSTOP)
        [claim] = until(queue.recover)
        if decided:
            finish(queue, claim)
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("go\n", timeout=60)
    assert set(said.split()) <= {"DatabaseFault", "LaneLost"}
    assert len(said.split()) == 2
    assert queue.load("zombie") is None
    if not decided:
        finish(queue, claim)
    assert queue.load("fix") == report(claim, "fix")
    assert list(queue.newest()) == ["fix"]


def test_an_owner_that_beats_is_not_taken_over(again: Open, database: str) -> None:
    queue = again(takeover_seconds=2)  # many of its beats, so that one may come late
    queue.submit(b"a 1", "x.md")
    with owner(database):
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert not queue.lanes.orphaned()
            assert queue.recover() == []
    assert [claim.data for claim in until(queue.recover)] == [b"a 1"]


def test_losing_the_connection_is_losing_the_claims(again: Open, database: str) -> None:
    queue = again()
    queue.submit(b"a 1", "x.md")
    [claim] = queue.claim(1)
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("select pg_terminate_backend(holder(lane_key('a')), 5000)")
    with pytest.raises(DatabaseFault) as lost:
        queue.reserve(claim, "fix")
    assert lost.value.retryable
    with pytest.raises(LaneLost):
        queue.publish(claim, report(claim, "fix"))
    [back] = queue.recover()
    assert finish(queue, back) == "fix"


def test_a_server_that_takes_no_writes_for_now_is_tried_again(again: Open, database: str) -> None:
    again().submit(b"a 1", "x.md")
    queue = again()
    queue.store.conninfo = f"{database}\\ -cdefault_transaction_read_only=on"
    with pytest.raises(DatabaseFault) as away:
        queue.claim(1)
    queue.store.conninfo = database
    assert away.value.retryable
    assert len(queue.claim(1)) == 1


def test_nothing_that_was_flushed_is_lost_with_the_server() -> None:
    with database_server() as server:
        with psycopg.connect(server.conninfo) as connection:
            migrate(connection)
        queue = PostgresQueue(server.conninfo)
        queue.submit(b"a 1", "x.md", flush=True)
        [claim] = queue.claim(1)
        intended = report(claim, queue.reserve(claim, "fix"))
        queue.intend(claim, intended)
        queue.sync()
        server.end(signal.SIGKILL)
        for step in (lambda: queue.publish(claim, intended), queue.recover):
            with pytest.raises(DatabaseFault) as away:
                step()
            assert away.value.retryable
        server.start()
        [back] = queue.recover()
        assert (back.data, back.intended) == (b"a 1", intended)
        queue.publish(back, intended)
        queue.sync()
        server.end(signal.SIGKILL)
        server.start()
        with pytest.raises(DatabaseFault):
            queue.load("fix")
        assert queue.load("fix") == intended
        assert queue.recover() == []
        queue.close()
