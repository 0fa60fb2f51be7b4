"""`patchq cluster`: the database that carries the queue of many machines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patchq.cli import opening, output
from patchq.core.text.quote import visible
from patchq.gate.api.cluster import SOON_SECONDS, database_of

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.status import ClusterState


ARGUMENTS = (
    {
        "migrate": ("make the database's tables, or bring them to this version", ()),
        "status": ("show the lanes, who owns them, what waits, and the workers", ()),
    },
)


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    config = location.rules().config
    opening.gate(args).setup_log(config)
    database = database_of(config)
    return _migrate(args, database) if args.what == "migrate" else _status(args, database)


def _migrate(args: Namespace, database: str) -> int:
    from patchq.gate.queue.postgres.database import DatabaseServer, whereabouts
    from patchq.gate.queue.postgres.schema import migrate
    from patchq.gate.queue.schema import VERSION

    connection = DatabaseServer(database, "migrate", checks=False)
    args.opened.callback(connection.close)
    with connection.faults():
        applied = migrate(connection.connection)
    text = f"the tables in {whereabouts(database)} have version {VERSION}"
    text += f", with {', '.join(applied)} applied" if applied else ", as before"
    return output.emit(args, {"version": VERSION, "applied": applied}, text)


def _status(args: Namespace, database: str) -> int:
    from patchq.gate.queue.postgres.status import look

    state = look(database)
    return output.emit(args, {**state.to_json()}, *map(visible, _lines(state)))


def _lines(state: ClusterState) -> Iterator[str]:
    yield f"queue in {state.database}, version {state.version}"
    unserved = {lane.lane for lane in state.unserved(SOON_SECONDS)}
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
