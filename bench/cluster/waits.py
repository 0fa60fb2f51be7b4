"""How long somebody waits: from a response to its verdict, and for a worker's successor."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench.cluster.fleet import PATIENCE, Fleet, edit
from bench.cluster.ground import ClusterGround
from bench.git import BenchError
from bench.speed.goal import Goal

_TAKEOVER = 2.0
_IDLE = 0.3


def latency(ground: ClusterGround) -> Iterator[Goal]:
    """Responses that come one by one to workers that have nothing to do.  What git's own `fetch`
    and `push` take of that is by git's own clock (trace2), from its start to its end; what the
    system takes to start it is not in it."""
    each = ground.size(20, 3)
    with ground.fleet("latency", files=each + 1) as fleet:
        trace = fleet.root / "trace"
        trace.mkdir()
        fleet.workers(2, GIT_TRACE2_EVENT=str(trace))
        times, shares = [], []
        for number in range(each + 1):
            one = edit(number, "main")
            before = set(trace.iterdir())
            began = time.perf_counter()
            fleet.drop([one])
            fleet.verdicts([one])
            seconds = time.perf_counter() - began
            time.sleep(_IDLE)
            if number:  # the first one finds nothing warm
                times.append(1000 * seconds)
                shares.append(_git_seconds(set(trace.iterdir()) - before) / seconds)
        yield Goal("from a drop to its verdict, idle workers, ms", times, 250)
        yield Goal("share of git fetch and push in that", shares, 0.9, at_least=True)
        ground.check(fleet, [edit(number, "main") for number in range(each + 1)])


def _git_seconds(traces: set[Path]) -> float:
    """What the fetches and pushes took that nobody but patchq started."""
    total = 0.0
    for path in traces:
        name, ended = "", 0.0
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if "/" not in event["sid"]:
                if event["event"] == "cmd_name":
                    name = event["name"]
                elif event["event"] in ("exit", "atexit"):
                    ended = event["t_abs"]
        if name in ("fetch", "push"):
            total += ended
    return total


def takeover(ground: ClusterGround) -> Iterator[Goal]:
    """The owner of a busy branch is killed, or frozen, until another worker owns the branch, and
    until a batch that this one decided is on the remote."""
    each = ground.size(60, 20)
    for what, number, limit in (
        ("killed", signal.SIGKILL, 1.0),
        ("frozen", signal.SIGSTOP, _TAKEOVER + 1.0),
    ):
        owned, landed = [], []
        rounds = range(ground.rounds)
        config = f", takeover_seconds: {_TAKEOVER:g}"
        with ground.fleet(f"takeover-{what}", files=each * len(rounds), config=config) as fleet:
            names = fleet.workers(2)
            sent = []
            for turn in rounds:
                some = [edit(turn * each + n, "main") for n in range(each)]
                sent += some
                fleet.drop(some)
                own, land = _successor(fleet, names, number)
                owned.append(own)
                landed.append(land)
                fleet.verdicts(some)
            ground.check(fleet, sent)
        yield Goal(f"{what} worker: until its branch has another owner, s", owned, limit)
        yield Goal(f"{what} worker: until its successor has landed a batch, s", landed, limit)


def _successor(fleet: Fleet, names: list[str], number: int) -> tuple[float, float]:
    """Seconds until another owner, and until its first landing; the worker works again then."""
    with psycopg.connect(fleet.conninfo, autocommit=True) as connection:

        def owner() -> tuple[int, str] | None:
            return connection.execute(
                "select s.number, s.name from lanes l join sessions s on s.number = l.session"
                " where l.name = 'main'"
                " and holder(lane_key('main')) = holder(session_key(s.number))"
            ).fetchone()

        old = None
        until = time.monotonic() + PATIENCE
        while old is None:
            old = owner()
            if time.monotonic() > until:
                raise BenchError("nobody took the branch")
        victim = fleet.running[old[1]]
        began = time.perf_counter()
        if number == signal.SIGKILL:
            fleet.kill(old[1])
        else:
            victim.send_signal(number)
        fleet.soon(lambda: (owner() or old)[1] != old[1], "there is another owner", 0.002)
        owned = time.perf_counter() - began
        before = fleet.tip()
        fleet.soon(lambda: fleet.tip() != before, "it lands something", 0.002)
        landed = time.perf_counter() - began
    if number == signal.SIGKILL:
        fleet.start(old[1], "worker", "--name", old[1])
    else:
        victim.send_signal(signal.SIGCONT)
    return owned, landed
