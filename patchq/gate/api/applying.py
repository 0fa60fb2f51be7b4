"""Deciding on a response at once, beside the inbox: here, or in a cluster by a worker.

In a cluster it goes to this machine's feeder, and is waited for until it has a verdict or is held.
"""

from __future__ import annotations

from contextlib import closing
from time import monotonic

from msgspec.structs import replace

from patchq.gate.api.submitting import oversize
from patchq.gate.errors import Busy, UsageError
from patchq.gate.land import worker
from patchq.gate.land.worker import Tell
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.pipeline.stages import lane_of
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import Report
from patchq.gate.review import decide, restack
from patchq.gate.service import cluster
from patchq.gate.service.watcher import Watcher

_LOOK_SECONDS = 1.0


def apply(session: Session, data: bytes, name: str, choice: Choice | None, tell: Tell) -> Report:
    """Return the report on a response, taken by the choice; `tell` gets each verdict."""
    if session.config.has_cluster:
        report = _handed_over(session, data, name, choice)
        tell(report)
        return report
    reports: list[Report] = []
    claim = session.queue.adopt(data, name, choice.to_json() if choice else None)
    claim = replace(claim, problem=oversize(session, data))
    worker.work([claim], session, reports.append, choice)
    restack.settle(session)
    for report in reports:
        tell(report)
    return next(one for one in reports if one.source.sha256 == claim.source.sha256)


def retry(session: Session, id: str, without: frozenset[str], tell: Tell) -> Report:
    """Return the report on another try of a change, but for the edits `without`."""
    return apply(session, *decide.another_try(session, id, without), tell)


def ask(session: Session, request: bytes, name: str, tell: Tell) -> None:
    """Ask the model for what the request asks, and decide on its answers."""
    if session.config.has_cluster:
        tell(_handed_over(session, request, name))
        return
    from patchq.gate.pipeline.requests import RequestDesk

    desk = RequestDesk(session)
    session = replace(session, desk=desk)
    with closing(desk):
        desk.take(replace(session.queue.adopt(request, name), request=True))
        while desk.open:
            worker.work(desk.answered(wait=1.0), session, tell)


def _handed_over(session: Session, data: bytes, name: str, choice: Choice | None = None) -> Report:
    """Return the report on a response that the feeder takes.

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
    if lane in cluster.unserved(session.config):
        raise Busy(
            f"no worker serves the branch {lane!r}, so the response waits in the queue",
            "see `patchq cluster status`, and start a worker; `patchq status` tells of the verdict",
        )
