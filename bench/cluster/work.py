"""How much work a landing is: of the processor, since the machine has others to serve."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.cluster.fleet import Fleet, Sent, edit
from bench.cluster.ground import ClusterGround
from bench.console import say
from bench.git import BenchError
from bench.speed.goal import Goal

_TURNS = 20
"""Tries to have each worker own a branch once, before it counts."""


@dataclass(frozen=True, slots=True)
class Paid:
    """What one landing took, in milliseconds: by the clock, and of the processor for workers and
    feeder, each with its git, and for the database (0: it is not ours)."""

    clock: float
    deciding: float
    feeding: float = 0.0
    database: float = 0.0

    @property
    def all(self) -> float:
        return self.deciding + self.feeding + self.database


def cost(ground: ClusterGround) -> Iterator[Goal]:
    """One worker and everything that it needs, against a daemon with a queue in a directory, once
    with the same remote and once with branches of its own."""
    each, ratios = ground.size(400, 40), dict[str, list[float]]()
    for turn in range(ground.rounds):
        sent = [edit(number, "main") for number in range(each)]
        with _fleet(ground, f"cost-{turn}", sent) as fleet:
            local = _directory(fleet, sent, "local", "")
            paid = _cluster(ground, fleet, sent, 1)
        with _fleet(ground, f"gate-{turn}", sent) as fleet:
            remote = _directory(fleet, sent, "gate", "landing: {remote: origin}\n")
        for name, value in (
            ("worker, feeder and database / daemon that pushes", paid.all / remote),
            ("worker, feeder and database / daemon on its own", paid.all / local),
            ("worker / daemon on its own", paid.deciding / local),
        ):
            ratios.setdefault(name, []).append(value)
    for name, values in ratios.items():
        yield Goal(f"processor: {name}", values, 2)


def one_branch(ground: ClusterGround) -> Iterator[Goal]:
    """Workers beside the one who owns the branch must not slow it down."""
    each, rates, works = ground.size(400, 40), list[float](), list[float]()
    for turn in range(ground.rounds):
        sent = [edit(number, "main") for number in range(each)]
        one, many = _both(ground, f"one-{turn}", sent, ("main",))
        rates.append(one.clock / many.clock)
        works.append(one.all / many.all)
    count = ground.workers
    yield Goal(f"one branch: rate, {count} workers / 1", rates, 0.9, at_least=True)
    yield Goal(f"one branch: landings a processor second, {count} / 1", works, 0.9, at_least=True)


def many_branches(ground: ClusterGround) -> Iterator[Goal]:
    """The same branches by one worker and by several."""
    each, works = ground.size(100, 10), list[float]()
    branches = ["main", *(f"b{number}" for number in range(1, ground.branches))]
    for turn in range(ground.rounds):
        sent = [edit(number, branch) for number in range(each) for branch in branches]
        one, many = _both(ground, f"many-{turn}", sent, branches)
        works.append(many.all / one.all)
    what = f"{len(branches)} branches: processor a landing"
    yield Goal(f"{what}, {ground.workers} workers / 1", works, 1.2)


def _both(
    ground: ClusterGround, name: str, sent: Collection[Sent], branches: Collection[str]
) -> tuple[Paid, Paid]:
    """By one worker, and by several."""
    found = []
    for workers in (1, ground.workers):
        with _fleet(ground, f"{name}-{workers}", sent, branches) as fleet:
            found.append(_cluster(ground, fleet, sent, workers))
    return found[0], found[1]


def _fleet(
    ground: ClusterGround, name: str, sent: Collection[Sent], branches: Collection[str] = ("main",)
) -> AbstractContextManager[Fleet]:
    """One with files for these and for what warms, and with a branch for each worker to warm on."""
    warm = [f"warm{number}" for number in range(ground.workers)]
    return ground.fleet(name, files=_first_free(sent) + _TURNS, branches=[*branches, *warm])


def _first_free(sent: Collection[Sent]) -> int:
    return max(int(one.id[1:6]) for one in sent) + 1


def _directory(fleet: Fleet, sent: Collection[Sent], name: str, config: str) -> float:
    """Milliseconds of the processor for a landing by `watch` alone."""
    fleet.clone(name, config)
    if not config:
        fleet.git(fleet.root / name, "update-ref", "refs/heads/main", fleet.start_oid)
    fleet.start(name, "watch")
    first = [edit(_first_free(sent), "main")]
    fleet.drop(first, name)
    fleet.verdicts(first, name)
    before = fleet.spent([name])
    fleet.drop(sent, name)
    fleet.verdicts(sent, name)
    spent = fleet.spent([name]) - before
    fleet.stop([name])
    say(f"  {name}: {1000 * spent / len(sent):.1f} ms of the processor a landing")
    return 1000 * spent / len(sent)


def _cluster(ground: ClusterGround, fleet: Fleet, sent: Collection[Sent], workers: int) -> Paid:
    names = fleet.workers(workers)
    warm = _warmed(fleet, names, _first_free(sent))
    server = ground.server
    before = [fleet.spent(names), fleet.spent(["feeder"]), server.spent() if server else 0.0]
    began = time.perf_counter()
    fleet.drop(sent)
    fleet.verdicts(sent)
    clock = time.perf_counter() - began
    after = [fleet.spent(names), fleet.spent(["feeder"]), server.spent() if server else 0.0]
    spent = [1000 * (b - a) / len(sent) for a, b in zip(before, after, strict=True)]
    ground.check(fleet, [*sent, *warm])
    fleet.stop([*names, "feeder"])
    paid = Paid(1000 * clock / len(sent), *spent)
    say(
        f"  {workers} workers, ms a landing: {paid.clock:.1f} by the clock; of the processor "
        f"{paid.deciding:.1f} deciding, {paid.feeding:.1f} feeding, {paid.database:.1f} database"
    )
    return paid


def _warmed(fleet: Fleet, names: Collection[str], first: int) -> list[Sent]:
    """Responses on branches of their own until each worker has landed some, so that all have been
    imported and opened everything; `first` is the number of the first file for them."""
    branches = [branch for branch in fleet.branches if branch.startswith("warm")]
    left, sent = set(names), list[Sent]()
    for number in range(first, first + _TURNS):
        some = [edit(number, branch) for branch in branches]
        fleet.drop(some)
        fleet.verdicts(some)
        sent += some
        left -= {name for (name,) in fleet.ask(_OWNERS)}
        if not left:
            return sent
    raise BenchError(f"{', '.join(sorted(left))} took no branch in {_TURNS} turns")


_OWNERS = """
    select distinct s.name from lanes l join sessions s on s.number = l.session
    where l.name like 'warm%'
"""
