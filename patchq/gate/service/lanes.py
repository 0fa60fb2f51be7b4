"""Serve lanes of a shared queue: take over what others left, work, and wait on the database.

A worker decides and lands as the daemon does on one machine.  What it loses with its connection it
leaves to whoever comes first, itself included; so a fault of the database only makes it begin
again, after a pause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, InDoubt
from patchq.gate.git.files import keep_heap_small
from patchq.gate.git.repository import Repository
from patchq.gate.git.tidying import Tidying
from patchq.gate.land import reports, worker
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import Session
from patchq.gate.pipeline.stages import lane_of
from patchq.gate.report.schema import WAITING, Report
from patchq.gate.review import errands
from patchq.gate.service.followers import Followers
from patchq.gate.service.rounds import LOOK_SECONDS, Rounds
from patchq.gate.service.serve import Control, Intake, by_tip, reloaded
from patchq.gate.service.upkeep import Manager

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue

_LOG = logging.getLogger("patchq")
_FIRST_PRUNE_SECONDS, _PRUNE_SECONDS = 60.0, 3600.0
_MOST_PRUNED = 1000
_DAY = 86_400.0
_RUNS = 8  # reports that take in at once what hooks printed
_FIRST_REST, _LONGEST_REST = 0.2, 5.0


def serve_lanes(
    session: Session,
    queue: PostgresQueue,
    control: Control,
    tell: worker.Tell,
    load: Callable[[], GateRules],
    manager: Manager,
) -> None:
    """Work until `control.stop`."""
    keep_heap_small()
    control.ring, control.cut_short = queue.ring, session.stop.set
    desk, poll_seconds = _Desk(session, queue), session.config.cluster.poll_seconds
    session = replace(session, desk=desk, pulse=partial(control.pulse, session, manager.alive))
    rest, searched, begun, intake = _FIRST_REST, 0.0, False, Intake()
    rounds, upkeep, followers = Rounds(), _Upkeep(session.repo), Followers()
    try:
        while not control.stop:
            manager.alive()
            desk.session = session = _renewed(session, queue, control, load, manager)
            if intake.is_held(session):
                queue.wait(LOOK_SECONDS)
                continue
            try:
                if due := monotonic() - searched >= poll_seconds:
                    searched = monotonic()
                if not begun or (due and queue.lanes.orphaned()):
                    worker.start(session, tell, patience=0.0 if begun else 5.0)
                    begun = True
                upkeep.turn()
                came = worker.turn(session, tell) + _carry_out(session, queue) > 0
                if rounds.due(came):
                    worker.look_at_held(session, tell)
                if came:
                    upkeep.worked()
                    followers.worked()
                    continue
                if reports.keep_hook_outputs(session, _RUNS) or followers.turn(session, queue):
                    continue
                upkeep.idle(session)
                if queue.wait(poll_seconds):
                    rounds.soon()  # a verdict may be what something here waits for
                rest = _FIRST_REST
            except Fault as fault:
                if not (fault.retryable or isinstance(fault, InDoubt)):
                    raise
                _LOG.warning("%s; it is tried again", fault.message)
                begun = False
                with suppress(Fault):
                    queue.release(fault)
                _rest(rest, control)
                rest = min(2 * rest, _LONGEST_REST)
    finally:
        desk.close()


class _Upkeep:
    """A worker's upkeep: git tidies up, and old batches are forgotten."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._tidying = Tidying(repo)
        self._prunes = monotonic() + _FIRST_PRUNE_SECONDS

    def turn(self) -> None:
        if self._tidying.combine():
            self._repo.renew()

    def worked(self) -> None:
        self._tidying.due = True

    def idle(self, session: Session) -> None:
        self._tidying.ask()
        if monotonic() >= self._prunes:
            self._prunes = monotonic() + _PRUNE_SECONDS
            _prune(session)


class _Desk(RequestDesk):
    """Requests of the worker itself, which belong to the feeder of the answered batch."""

    def __init__(self, session: Session, queue: PostgresQueue) -> None:
        super().__init__(session, queue.ring)
        self._queue = queue

    def refused(self, report: Report) -> None:
        with self._queue.acting_for(self._queue.feeder_of(report.id)):
            super().refused(report)


def _renewed(
    session: Session,
    queue: PostgresQueue,
    control: Control,
    load: Callable[[], GateRules],
    manager: Manager,
) -> Session:
    """The session under the rules as they are now."""
    now = by_tip(session)
    if control.reload:
        manager.reloading()
        control.reload = False
        now = reloaded(now, load)
        manager.ready()
    if now is not session:
        queue.lane_of = lane_by(now.config, now.target)
    return now


def lane_by(config: Config, target: str) -> Callable[[bytes, str], str]:
    """Return a function that gives the lane of a response from its bytes and name."""
    return lambda data, name: lane_of(data, target, config.targets)


def _carry_out(session: Session, queue: PostgresQueue) -> int:
    """Do what people asked for; how much that was."""
    asked = queue.asked()
    for number, words, again in asked:
        feeder, errand = words.get("feeder"), {**words}
        errand.pop("feeder", None)
        with queue.acting_for(feeder):
            answer = errands.carry_out(session, errand, again=again)
        queue.done(number, answer)
    return len(asked)


def _prune(session: Session) -> None:
    """Forget finished batches as `queue.retention_days` says, some at a time; proposals stay."""
    days = session.config.queue.retention_days
    if not days:
        return
    for id in islice(session.queue.older(session.clock() - days * _DAY), _MOST_PRUNED):
        report = session.queue.load(id)
        if report and report.state not in WAITING:
            session.queue.forget(id)


def _rest(seconds: float, control: Control) -> None:
    from threading import Event

    woken = Event()
    before, control.ring = control.ring, woken.set
    try:
        if not control.stop:
            woken.wait(seconds)
    finally:
        control.ring = before
