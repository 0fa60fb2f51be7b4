"""The handover in a cluster: a response that a command has goes to this machine's feeder,
beside the inbox, and the command waits for its verdict, or for why it is held."""

from __future__ import annotations

from contextlib import closing
from time import monotonic

from patchq.gate.api import cluster
from patchq.gate.errors import Busy, UsageError
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.pipeline.stages import lane_of
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import Report
from patchq.gate.service.watcher import Watcher

_LOOK_SECONDS = 1.0


def decided(session: Session, data: bytes, name: str, choice: Choice | None = None) -> Report:
    """The report on the response, taken as a person wants it.

    `UsageError` where no feeder runs, and then nothing was done; `errors.Busy` where no worker
    serves the branch, and then the response waits in the queue.
    """
    if lock_owner(session.queue_root) is None:
        raise UsageError(
            "no daemon feeds the cluster from this machine, so nothing was done",
            "start `patchq watch`, then say it again",
        )
    queue = store_queue(session.queue)
    with closing(Watcher(queue.root)) as watcher:
        claim = queue.adopt(data, name, choice.to_json() if choice else None)
        queue.leave(claim)
        looks = monotonic() + cluster.SOON_SECONDS
        while (report := _new_report(watcher, queue, claim.token)) is None:
            if monotonic() > looks:
                _check_that_it_is_served(
                    session, (choice and choice.target) or _lane(session, data)
                )
                looks = monotonic() + _LOOK_SECONDS
            watcher.wait(_LOOK_SECONDS)
    return report


def _new_report(watcher: Watcher, queue: StoreQueue, token: str) -> Report | None:
    for event in watcher.read():
        if queue.token(event["batch"]) == token and (report := queue.load(event["batch"])):
            return report
    return None


def _lane(session: Session, data: bytes) -> str:
    return lane_of(data, session.target, session.config.targets)


def _check_that_it_is_served(session: Session, lane: str) -> None:
    from patchq.gate.queue.postgres.status import look

    state = look(cluster.database_of(session.config))
    if any(one.lane == lane for one in state.unserved(cluster.SOON_SECONDS)):
        raise Busy(
            f"no worker serves the branch {lane!r}, so the response waits in the queue",
            "see `patchq cluster status`, and start a worker; `patchq status` tells of the verdict",
        )
