"""Deciding on a batch where it is decided on: here, or in a cluster by the worker that serves its
branch.  Every door (command, page, MCP, `review --next`) decides by this."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from patchq.gate.api import cluster
from patchq.gate.errors import UsageError
from patchq.gate.land import worker
from patchq.gate.pipeline import history
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.review import errands
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import Errand

_FOLLOWS_SECONDS = 10.0  # the wait for the feeder here, if one runs


def decide(session: Session, errand: Errand, tell: worker.Tell = lambda report: None) -> Decided:
    """Have it done, and return what came of it; `tell` gets the verdicts on batches that were made
    for it.  Raises what kept it from being done, here or there; in a cluster `errors.Busy` where
    no worker serves the branch."""
    return begun(session, errand, tell)()


def begun(
    session: Session, errand: Errand, tell: worker.Tell = lambda report: None
) -> Callable[[], Decided]:
    """The same in two steps, for those who share a session: what is returned waits for a worker,
    where one decides, and does not use the session any more."""
    if not session.config.has_cluster:
        decided = errand.carry_out(session, tell)
        return lambda: decided
    from patchq.gate.api.cluster import feeder_name

    report = session.queue.load(errand.id)
    return partial(
        _asked,
        errand,
        tell,
        database=cluster.database_of(session.config),
        root=session.queue_root,
        feeder=feeder_name(session.queue_root),
        lane=report.target or session.target if report else None,
        unknown=None if report else history.unknown(session, errand.id),
    )


def _asked(
    errand: Errand,
    tell: worker.Tell,
    *,
    database: str,
    root: Path,
    feeder: str,
    lane: str | None,
    unknown: UsageError | None,
) -> Decided:
    """Have the owner of the lane do it; without one, that of the batch, which is `unknown` here."""
    from patchq.gate.queue.postgres import errands as far
    from patchq.gate.queue.postgres.database import DatabaseServer

    with closing(DatabaseServer(database, "asks")) as server:
        lane = lane or far.lane_of(server, errand.id)
        if lane is None:
            assert unknown
            raise unknown
        words = {**errands.words_of(errand), "feeder": feeder}
        answer = far.ask(server, lane, words, cluster.SOON_SECONDS)
        if lock_owner(root) is not None:
            # Else what is looked at next is shown as it was before this.
            far.follow(server, feeder, _FOLLOWS_SECONDS)
    decided, verdicts = errands.answered(answer)
    for verdict in verdicts:
        tell(verdict)
    return decided
