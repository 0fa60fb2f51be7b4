"""Serve lanes of a shared queue: take over what others left, work, and wait on the database.

A worker decides and lands as the daemon does on one machine.  What it loses with its connection it
leaves to whoever comes first, itself included; so a fault of the database only makes it begin
again, after a pause.

A lane has no owner while nothing comes for it, and what waits for review there may wait for days.
So every worker looks at the remote now and then, as long as anything waits, and takes the lanes
whose target, or one of whose proposals, is not where it was when this worker last saw to them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from patchq.gate.errors import Fault, InDoubt, Unreachable
from patchq.gate.git import records
from patchq.gate.land import worker
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import Report
from patchq.gate.review import errands
from patchq.gate.service.feed import lane_by
from patchq.gate.service.serve import LOOK_SECONDS, Daemon, Followers

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue

_LOG = logging.getLogger("patchq")
_FIRST_REST, _LONGEST_REST = 0.2, 5.0


class LaneWorker(Daemon):
    """The process that decides on what comes for its lanes."""

    queue: PostgresQueue

    def _open(self) -> None:
        self.queue = self.session.queue  # type: ignore[assignment]
        self.control.ring = self.queue.ring
        self.followers = LaneFollowers(self.queue)
        self._rest, self._searched = _FIRST_REST, 0.0

    def _new_desk(self) -> RequestDesk:
        return LaneDesk(self.session, self.queue)

    def turn(self) -> bool:
        self.queue.lane_of = lane_by(self.session.config, self.session.target)
        if monotonic() - self._searched >= self.session.config.cluster.poll_seconds:
            self._searched = monotonic()
            if self.recovered and self.queue.lanes.orphaned():
                worker.start(self.session, self.tell, patience=0.0)
        # A lane is kept until all have followed there.
        return super().turn() or not self.followers.pause

    def work(self) -> int:
        return worker.turn(self.session, self.tell) + self._carry_out()

    def _carry_out(self) -> int:
        """Do what people asked for; return how much that was."""
        asked = self.queue.asked()
        for number, words, again in asked:
            with self.queue.acting_for(words.pop("feeder", None)):
                answer = errands.carry_out(self.session, words, again=again)
            self.queue.done(number, answer)
        return len(asked)

    def look_round(self) -> None:
        worker.look_at_held(self.session, self.tell)

    @property
    def pause(self) -> float:
        return min(self.session.config.cluster.poll_seconds, self.followers.pause)

    def wait(self, seconds: float) -> None:
        if self.queue.wait(seconds):
            self.rounds.soon()  # a verdict may be what something here waits for
        self._rest = _FIRST_REST

    def begin_again(self, fault: Fault) -> None:
        if not (fault.retryable or isinstance(fault, InDoubt)):
            raise fault
        _LOG.warning("%s; it is tried again", fault.message)
        self.recovered = False
        with suppress(Fault):
            self.queue.release(fault)
        self.queue.rest(self._rest)
        self._rest = min(2 * self._rest, _LONGEST_REST)

    def close(self) -> None:
        self.desk.close()


class LaneDesk(RequestDesk):
    """Requests of the worker itself, which belong to the feeder of the answered batch."""

    def __init__(self, session: Session, queue: PostgresQueue) -> None:
        super().__init__(session, queue.ring)
        self._queue = queue

    def refused(self, report: Report) -> None:
        with self._queue.acting_for(self._queue.feeder_of(report.id)):
            super().refused(report)


class LaneFollowers(Followers):
    """Proposals of the worker's lanes, and of those that it takes since something moved there."""

    def __init__(self, queue: PostgresQueue) -> None:
        super().__init__()
        self._queue = queue
        # Branches of lanes, as they were when all proposals had followed.
        self._settled: Mapping[str, object] = {}
        self._looks = 0.0

    def turn(self, session: Session) -> None:
        poll_seconds = session.config.landing.poll_seconds
        if monotonic() >= self._looks:
            self._looks = monotonic() + max(LOOK_SECONDS, poll_seconds)
            self._look(session, poll_seconds)
        super().turn(session)

    def follow(self, session: Session) -> float:
        own = self._queue.lanes.own
        if not own:
            return LOOK_SECONDS
        before, pause = _places(session, own), super().follow(session)
        if session.branches.away is None:
            now = _places(session, own)
            if not self.over or now != before:
                return 0.0
            if self.quiet:
                self._settled = {**self._settled, **now}
        return pause

    def _look(self, session: Session, poll_seconds: float) -> None:
        """Take the lanes in which there may be something to do."""
        orphaned = self._queue.lanes.orphaned()  # what was left there is recovered first
        lanes = [lane for lane in self._queue.proposing() if lane not in orphaned]
        self._settled = {lane: self._settled[lane] for lane in lanes if lane in self._settled}
        if not lanes:
            return
        try:
            session.branches.refresh(within=poll_seconds)
        except Unreachable:  # it is noted
            return
        for lane, place in _places(session, lanes).items():
            if self._settled.get(lane) != place and self._queue.lanes.take(lane):
                self._next = 0.0


def _places(session: Session, lanes: Iterable[str]) -> dict[str, object]:
    proposals = session.branches.tips(records.branch(""))
    return {lane: (session.branches.tip(lane), proposals) for lane in lanes}
