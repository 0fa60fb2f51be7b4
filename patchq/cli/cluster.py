"""`patchq cluster`: the database that carries the queue of many machines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patchq.cli import opening, output
from patchq.core.text.quote import visible
from patchq.gate.api.location import DATABASE, database
from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.status import ClusterState

SOON_SECONDS = 10.0
"""A lane may wait for so long before it is said that nobody serves it."""

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


def database_of(config: Config) -> str:
    """The connection string; `UsageError` where there is none, or nothing to connect with."""
    named = database(config)
    if not named:
        raise UsageError(
            "no database is named, so there is no cluster",
            f"set {DATABASE}, or `cluster.database` (without a password) in the file",
        )
    try:
        import patchq.gate.queue.postgres.database  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"the package {error.name!r} is not installed", "pip install 'patchq[cluster]'"
        ) from None
    return named


def target_of(config: Config) -> str:
    """The branch of what names none, which is the same on all machines."""
    if not config.has_cluster:
        raise UsageError(
            "the configuration has no `cluster` section",
            "add `cluster:` to the configuration, as docs/cluster.md shows",
        )
    if config.target is None:
        raise UsageError(
            "a cluster needs a default target that is the same on every machine",
            "set `target` in the configuration",
        )
    return config.target


def _migrate(args: Namespace, database: str) -> int:
    from patchq.gate.queue.postgres.database import DatabaseServer, whereabouts
    from patchq.gate.queue.postgres.schema import migrate
    from patchq.gate.queue.schema import VERSION

    connection = DatabaseServer(database, "migrate", checks=False)
    args.opened.callback(connection.close)
    with connection.faults():
        applied = migrate(connection.connection)
    told = f"the tables in {whereabouts(database)} have version {VERSION}"
    told += f", with {', '.join(applied)} applied" if applied else ", as before"
    return output.emit(args, {"version": VERSION, "applied": applied}, told)


def _status(args: Namespace, database: str) -> int:
    from patchq.gate.queue.postgres.status import look

    state = look(database)
    return output.emit(args, {**state.to_json()}, *map(visible, _lines(state)))


def _lines(state: ClusterState) -> Iterator[str]:
    yield f"queue in {state.database}, version {state.version}"
    unserved = {lane.lane for lane in state.unserved(SOON_SECONDS)}
    for lane in state.lanes:
        owner = lane.owner or ("NOBODY SERVES IT" if lane.lane in unserved else "free")
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
