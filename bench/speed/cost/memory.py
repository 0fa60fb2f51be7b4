"""The memory of a daemon, against what it was after its first landings."""

from __future__ import annotations

from collections.abc import Iterator

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.memory import MOST_GROWTH, growth

LANDINGS = 6000


def memory(ground: Ground) -> Iterator[Goal]:
    """A short piece of `bench.speed.memory`; it is counted, so one round will do."""
    landings = 800 if ground.quick else LANDINGS
    looks = list(growth(ground.room, ground.home, ground.command, landings, landings // 6))
    (first, start), (last, _) = looks[0], looks[-1]
    most = max(kib for _, kib in looks[1:])
    name = f"resident memory up to {last:,} landings / after {first:,}"
    yield Goal(name, [most / start], MOST_GROWTH)
