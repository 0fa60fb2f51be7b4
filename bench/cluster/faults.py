"""Break a cluster at random while responses come in, then have the judge look at what is left.

Workers and the feeder get SIGKILL and start again; workers are stopped for up to twice the time
after which they are taken for frozen; the remote is away for a while; the database's main process
gets SIGKILL and starts again.  Several of these may be so at once.
"""

from __future__ import annotations

import heapq
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from bench.cluster.fleet import Fleet, Sent, edit
from bench.cluster.ground import ClusterGround
from bench.cluster.judge import Violation, judge
from bench.cluster.server import ServerOnce
from bench.console import say

TAKEOVER = 2.0
_WORKERS = 3
_PAUSE, _BETWEEN = 0.15, 1.5
"""Seconds between two responses, and two faults, on average."""
_MOST = 4000


@dataclass
class Havoc:
    """What is broken now, and when it is mended; `done` counts what was broken."""

    fleet: Fleet
    server: ServerOnce | None
    dice: random.Random
    done: Counter[str] = field(default_factory=Counter)
    _mends: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _broken: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=count)

    def strike(self) -> None:
        """One more fault, of something that works."""
        workers = [f"w{number}" for number in range(1, _WORKERS + 1)]
        faults: list[tuple[str, str]] = [
            *(("kill", name) for name in workers),
            *(("freeze", name) for name in workers),
            ("kill", "feeder"),
            ("away", "remote"),
        ]
        if self.server:
            faults.append(("kill", "database"))
        what, whom = self.dice.choice(faults)
        if whom in self._broken:
            return
        self._broken.add(whom)
        self.done[f"{what} {whom.rstrip('123')}"] += 1
        mend = getattr(self, f"_{what}")(whom)
        most = 2 * TAKEOVER if what == "freeze" else 2.0
        when = time.monotonic() + self.dice.uniform(0.05, most)
        heapq.heappush(self._mends, (when, next(self._numbers), mend))

    def revive(self) -> None:
        """Start again what ended by itself, as a service manager does: what starts while the
        database is away says so and ends."""
        for whom, process in list(self.fleet.running.items()):
            if whom not in self._broken and process.poll() is not None:
                del self.fleet.running[whom]
                self.done[f"end of {whom.rstrip('123')} by itself"] += 1
                self._start(whom)

    def _start(self, whom: str) -> None:
        words = ("watch",) if whom == "feeder" else ("worker", "--name", whom)
        self.fleet.start(whom, *words)

    def _kill(self, whom: str) -> Callable[[], None]:
        if whom == "database":
            assert self.server
            self.server.end(signal.SIGKILL)
            return self._mended(whom, self.server.start)
        self.fleet.kill(whom)
        return self._mended(whom, lambda: self._start(whom))

    def _freeze(self, whom: str) -> Callable[[], None]:
        self.fleet.running[whom].send_signal(signal.SIGSTOP)
        wake = self.fleet.running[whom].send_signal
        return self._mended(whom, lambda: wake(signal.SIGCONT))

    def _away(self, whom: str) -> Callable[[], None]:
        gone = self.fleet.hub.with_name("gone.git")
        self.fleet.hub.rename(gone)
        return self._mended(whom, lambda: gone.rename(self.fleet.hub))

    def _mended(self, whom: str, how: Callable[[], object]) -> Callable[[], None]:
        def mend() -> None:
            how()
            self._broken.discard(whom)

        return mend

    def mend(self, everything: bool = False) -> None:
        """What is due."""
        while self._mends and (everything or self._mends[0][0] <= time.monotonic()):
            heapq.heappop(self._mends)[2]()


def faults(ground: ClusterGround, seconds: float, seed: int) -> list[Violation]:
    """What is not as it must be after so many seconds of faults."""
    dice = random.Random(seed)
    config = f", takeover_seconds: {TAKEOVER:g}"
    branches = ["main", "b1", "b2"]
    with ground.fleet("faults", files=_MOST, branches=branches, config=config) as fleet:
        fleet.workers(_WORKERS)
        havoc = Havoc(fleet, ground.server, dice)
        sent: list[Sent] = []
        with _in_the_end(havoc):
            until = time.monotonic() + seconds
            drop = strike = time.monotonic()
            while (now := time.monotonic()) < until and len(sent) < _MOST:
                havoc.mend()
                havoc.revive()
                if now >= drop:
                    drop = now + dice.uniform(0, 2 * _PAUSE)
                    sent.append(_next(dice, sent, branches))
                    fleet.drop(sent[-1:])
                if now >= strike:
                    strike = now + dice.uniform(0, 2 * _BETWEEN)
                    havoc.strike()
                time.sleep(0.01)
        fleet.verdicts(sent)
        fleet.stop(sorted(fleet.running))
        found = judge(fleet, sent)
        _tell(fleet, sent, havoc)
    return found


@contextmanager
def _in_the_end(havoc: Havoc) -> Iterator[None]:
    try:
        yield
    finally:
        havoc.mend(everything=True)
        time.sleep(1.0)
        havoc.revive()


def _next(dice: random.Random, sent: list[Sent], branches: list[str]) -> Sent:
    """A good one mostly, a bad one, or the same bytes once more."""
    number = len(sent)
    again = [one for one in sent[-20:] if one.applied is not None]
    if again and dice.random() < 0.15:
        one = dice.choice(again)
        return replace(one, id=f"a{number:05}-{one.branch}")
    return edit(number, dice.choice(branches), good=dice.random() < 0.85)


def _tell(fleet: Fleet, sent: list[Sent], havoc: Havoc) -> None:
    states = Counter(report["state"] for some in fleet.reports().values() for report in some)
    say(f"{len(sent)} responses: {', '.join(f'{n} {state}' for state, n in states.items())}")
    say(f"faults: {', '.join(f'{n} {what}' for what, n in sorted(havoc.done.items()))}")
