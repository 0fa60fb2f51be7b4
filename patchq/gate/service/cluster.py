"""The cluster that a configuration names."""

from __future__ import annotations

import os
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError, needs_extra
from patchq.gate.git import files

DATABASE = "PATCHQ_DATABASE"
SOON_SECONDS = 10.0  # for so long a worker may take to see a command
FEEDER = "feeder"


def database(config: Config) -> str:
    """Return the connection string of the cluster's database; empty where none is named."""
    return config.cluster.database or os.environ.get(DATABASE, "")


def database_of(config: Config) -> str:
    """Return the connection string.

    Raises `UsageError` where there is none, or nothing to connect with.
    """
    named = database(config)
    if not named:
        raise UsageError(
            "no database is named, so there is no cluster",
            f"set {DATABASE}, or `cluster.database` (without a password) in the file",
        )
    with needs_extra("cluster"):
        import patchq.gate.queue.postgres.database  # noqa: F401
    return named


def target_of(config: Config) -> str:
    """Return the default branch, which is the same on all machines."""
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


def feeder_name(root: Path) -> str:
    """Return the queue's name in the database: made once, and kept with its claims."""
    place = root / FEEDER
    try:
        return place.read_text().strip()
    except FileNotFoundError:
        name = uuid.uuid4().hex
        files.replace(place, name.encode() + b"\n", via=root / f".{FEEDER}", flush=True)
        return name


def migrate(config: Config) -> tuple[int, bool, str]:
    """Make the tables; return their version, False where they were there, and a summary."""
    named = database_of(config)
    from patchq.gate.queue.database import VERSION
    from patchq.gate.queue.postgres.database import DatabaseServer, migrate, whereabouts

    with closing(DatabaseServer(named, "migrate", checks=False)) as server, server.faults():
        made = migrate(server.connection)
    done = "made now" if made else "as before"
    return VERSION, made, f"the tables in {whereabouts(named)} have version {VERSION}, {done}"


def look(config: Config) -> dict[str, Any]:
    """Return the state of the cluster."""
    named = database_of(config)
    from patchq.gate.queue.postgres import database as server

    return server.look(named)


def unserved(config: Config) -> set[str]:
    return set(look(config)["unserved"])
