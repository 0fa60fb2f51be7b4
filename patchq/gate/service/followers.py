"""Proposals follow their target in a cluster, too, whoever moved it.

A lane has no owner while nothing comes for it, and what waits for review there may wait for days.
So every worker looks at the remote now and then, as long as anything waits, and takes the lanes
whose target, or one of whose proposals, is not where it was when this worker last saw to them.  The
lane's owner alone has its proposals follow; who comes second finds that done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from patchq.gate.errors import Unreachable
from patchq.gate.git import records
from patchq.gate.pipeline.session import Session
from patchq.gate.review import restack

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue

QUIET_SECONDS = 2.0  # without responses for so long, all follow their targets
_PIECE_SECONDS = 0.05  # seconds of looking at proposals before the queue is looked at


class Followers:
    """One worker's; a piece at a time, so that no response waits for long."""

    def __init__(self) -> None:
        # Branches of lanes, as they were when all proposals had followed.
        self._settled: Mapping[str, object] = {}
        self._worked = self._due = self._looks = 0.0

    def worked(self) -> None:
        """Take note that there was something to do."""
        self._worked, self._due = monotonic(), 0.0

    def turn(self, session: Session, queue: PostgresQueue) -> bool:
        """Have some follow in the lanes that are this worker's; whether there may be more."""
        began = monotonic()
        if began >= self._looks:
            self._looks = began + max(QUIET_SECONDS, session.config.landing.poll_seconds)
            self._look(session, queue)
        own = queue.lanes.own
        if not own or began < self._due:
            return False
        quiet, before = began - self._worked >= QUIET_SECONDS, _places(session, own)
        over = restack.settle(session, rest=quiet, seconds=_PIECE_SECONDS)
        if session.branches.away is None:
            now = _places(session, own)
            if not over or now != before:
                return True
            if quiet:
                self._settled = {**self._settled, **now}
        self._due = monotonic() + QUIET_SECONDS
        return False

    def _look(self, session: Session, queue: PostgresQueue) -> None:
        """Take the lanes in which there may be something to do."""
        orphaned = queue.lanes.orphaned()  # what was left there is recovered first
        lanes = [lane for lane in queue.proposing() if lane not in orphaned]
        self._settled = {lane: self._settled[lane] for lane in lanes if lane in self._settled}
        if not lanes:
            return
        try:
            session.branches.refresh(within=session.config.landing.poll_seconds)
        except Unreachable:  # it is noted
            return
        for lane, place in _places(session, lanes).items():
            if self._settled.get(lane) == place:
                continue
            if lane in queue.lanes.own or queue.lanes.take(lane):
                self._due = 0.0


def _places(session: Session, lanes: Iterable[str]) -> dict[str, object]:
    proposals = session.branches.tips(records.branch(""))
    return {lane: (session.branches.tip(lane), proposals) for lane in lanes}
