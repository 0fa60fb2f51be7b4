"""The cluster that a configuration names."""

from __future__ import annotations

import uuid
from pathlib import Path

from patchq.gate.api.location import DATABASE, database
from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError, needs_extra
from patchq.gate.git import files

SOON_SECONDS = 10.0  # a lane may wait for so long before it counts as not served
FEEDER = "feeder"


def database_of(config: Config) -> str:
    """The connection string; `UsageError` where there is none, or nothing to connect with."""
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


def feeder_name(root: Path) -> str:
    """Return the queue's name in the database: made once, and kept with its claims."""
    place = root / FEEDER
    try:
        return place.read_text().strip()
    except FileNotFoundError:
        name = uuid.uuid4().hex
        files.replace(place, name.encode() + b"\n", via=root / f".{FEEDER}", flush=True)
        return name
