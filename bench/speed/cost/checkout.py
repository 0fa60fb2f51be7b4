"""Landing where a work tree follows, against landing on a branch that is not checked out."""

from __future__ import annotations

from collections.abc import Iterator

from bench.speed.cost.ground import Ground
from bench.speed.goal import Goal
from bench.speed.measure import patchq, patchq_checked_out
from bench.speed.repos import Site, changes

RESPONSES = 500


def checkout(ground: Ground) -> Iterator[Goal]:
    """The rate of `patchq run` with the target checked out, to that without, by the clock."""
    sizes, count = ([1_000, 20_000, 100_000], RESPONSES) if not ground.quick else ([1_000], 100)
    for size in sizes:
        site, made = Site(ground.room / str(size), size, ground.home), changes(count, size)
        wanted, ratios = site.wanted_tree(made), []
        for _ in range(ground.rounds):
            bare = patchq(ground.command, site, made, wanted).seconds
            ratios.append(bare / patchq_checked_out(ground.command, site, made, wanted).seconds)
        yield Goal(f"rate, checked out / not, {size:,} files", ratios, 0.5, at_least=True)
