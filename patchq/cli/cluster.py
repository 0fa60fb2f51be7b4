"""`patchq cluster`: the database that carries the queue of many machines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import opening, output
from patchq.core.text.quote import visible
from patchq.gate.service import cluster

ARGUMENTS = (
    {
        "migrate": ("make the database's tables, or bring them to this version", ()),
        "status": ("show the lanes, who owns them, what waits, and the workers", ()),
    },
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    config = gate.reload().config
    if args.what == "migrate":
        version, applied, text = cluster.migrate(config)
        return output.emit(args, {"version": version, "applied": applied}, text)
    state = cluster.look(config)
    return output.emit(args, {**state.to_json()}, *map(visible, _lines(state)))


def _lines(state: cluster.ClusterState) -> Iterator[str]:
    yield f"queue in {state.database}, version {state.version}"
    unserved = {lane.lane for lane in state.unserved(cluster.SOON_SECONDS)}
    for lane in state.lanes:
        owner = lane.owner or ("NOT SERVED" if lane.lane in unserved else "free")
        beat = f", beat {lane.beat:.0f} s ago" if lane.beat is not None else ""
        counts = f"{lane.waiting} waiting, {lane.claimed} in hand, {lane.held} held"
        yield f"lane {lane.lane or '(default)'}: {counts}; {owner}{beat}"
    for worker in state.workers:
        yield (
            f"worker {worker.name} on {worker.host}, process {worker.pid}: "
            f"for {worker.began:.0f} s, beat {worker.beat:.0f} s ago"
        )
    if unserved:
        named = ", ".join(sorted(unserved))
        yield f"start `patchq worker` where `cluster.lanes` lets it serve {named}"
    if not state.lanes and not state.workers:
        yield "nothing was ever submitted, and no worker is there"
