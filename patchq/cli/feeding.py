"""`patchq watch` where there is a cluster: this machine's inbox feeds the shared queue."""

from __future__ import annotations

import uuid
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from patchq.cli.cluster import database_of, target_of
from patchq.cli.session import Session
from patchq.git import files
from patchq.model.errors import Fault
from patchq.service.feed import feed

FEEDER = "feeder"


def feed_cluster(args: Namespace, session: Session) -> None:
    """Feed until the session is told to stop; a database that is away is waited for."""
    world = session.world
    target_of(world.config)
    database = database_of(world.config)
    from patchq.queue.postgres.entries import Entries
    from patchq.queue.postgres.listening import Listening

    entries = Entries(database, feeder_name(world.queue_root))
    args.opened.callback(entries.close)
    try:
        entries.open()
    except Fault as fault:
        if not fault.retryable:
            raise

    def listen(ring: Callable[[], None]) -> None:
        args.opened.callback(Listening(database, ring).close)

    feed(world, entries, session.control, session.tell, session.upkeep, listen, session.refresh)


def feeder_name(root: Path) -> str:
    """What the database calls this queue: made once, and kept with the claims that go by it."""
    place = root / FEEDER
    try:
        return place.read_text().strip()
    except FileNotFoundError:
        name = uuid.uuid4().hex
        files.replace(place, name.encode() + b"\n", via=root / f".{FEEDER}", flush=True)
        return name
