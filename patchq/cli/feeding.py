"""`patchq watch` and `run` where there is a cluster: the inbox here feeds the shared queue."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from patchq.cli.tenure import Tenure
from patchq.gate.api.cluster import SOON_SECONDS, database_of, feeder_name, target_of
from patchq.gate.errors import Fault
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.service.feed import FeedingDaemon, feed_once, lane_by

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.entries import Entries


def feed_cluster(args: Namespace, tenure: Tenure, reload: Callable[[], GateRules]) -> None:
    """Feed until the tenure is to stop; a database that is away is waited for, and `reload`
    reads the configuration anew."""
    _, entries = _entries(args, tenure)
    try:
        entries.open()
    except Fault as fault:
        if not fault.retryable:
            raise
    FeedingDaemon(tenure.session, entries, tenure.control, tenure.tell, reload, tenure.upkeep).run()


def drain_cluster(args: Namespace, tenure: Tenure) -> None:
    """Feed what waits, and wait for what becomes of it."""
    database, entries = _entries(args, tenure)
    entries.open()
    from patchq.gate.queue.postgres.status import look

    def unserved() -> list[str]:
        return [one.lane for one in look(database).unserved(SOON_SECONDS)]

    feed_once(
        tenure.session,
        entries,
        tenure.control,
        tenure.tell,
        tenure.upkeep,
        unserved,
    )


def _entries(args: Namespace, tenure: Tenure) -> tuple[str, Entries]:
    """The database, and what this machine has in it."""
    target_of(tenure.session.config)
    database = database_of(tenure.session.config)
    from patchq.gate.queue.postgres import belonging
    from patchq.gate.queue.postgres.entries import Entries

    session = tenure.session
    tip = session.branches.tip(session.target)
    belongs = partial(belonging.check, repo=session.repo, tip=tip)
    lane_of = lane_by(session.config, session.target)
    entries = Entries(database, feeder_name(session.queue_root), lane_of, belongs)
    args.opened.callback(entries.close)
    return database, entries
