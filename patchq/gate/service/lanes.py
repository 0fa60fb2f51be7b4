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
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, Unreachable
from patchq.gate.git import records
from patchq.gate.git.repository import Repository
from patchq.gate.land import worker
from patchq.gate.pipeline.context import GateRules, RepoContext, branches_of
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.session import Session, compose
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.lock import Lock
from patchq.gate.report.schema import Report
from patchq.gate.review import errands
from patchq.gate.service import cluster
from patchq.gate.service.daemon import LOOK_SECONDS, Daemon, Followers
from patchq.gate.service.feed import lane_by, open_unless_away

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue

_LOG = logging.getLogger("patchq")
LOCK = "worker.lock"


def work(
    repo: Repository,
    places: tuple[Path, Path],
    rules: GateRules,
    say: worker.Tell,
    load: Callable[[], GateRules],
    *,
    name: str | None,
    lanes: Sequence[str] | None,
) -> int:
    """Serve the lanes in this clone until a signal; return the exit code.

    The places are the home of the configuration's paths, and the queue.
    """
    (home, root), config = places, rules.config
    target = cluster.target_of(config)
    with ExitStack() as ends:
        lock = Lock(root / LOCK)
        lock.acquire()
        ends.callback(lock.release)
        branches = branches_of(repo, root, config, target, rules.home)
        queue = _opened(repo, config, branches.tip(target), name, lanes)
        ends.callback(queue.close)
        session = compose(
            RepoContext(repo, queue, root, config, target, branches=branches, judged_by=rules)
        )
        ends.callback(session.close)
        session = replace(session, clock=queue.clock, serves=True)
        serving = ends.enter_context(LaneWorker(session, home, say, queue))
        served = ", ".join(lanes or config.cluster.lanes)
        _LOG.info("worker %s serves %s", queue.store.name, served)
        return serving.serve(load)


def _opened(
    repo: Repository, config: Config, tip: str | None, name: str | None, lanes: Sequence[str] | None
) -> PostgresQueue:
    from patchq.gate.queue.postgres.database import belongs
    from patchq.gate.queue.postgres.engine import PostgresQueue

    return PostgresQueue(
        cluster.database_of(config),
        name=name or f"{socket.gethostname()}-{os.getpid()}",
        lanes=lanes or config.cluster.lanes,
        lane_of=lane_by(config, cluster.target_of(config)),
        takeover_seconds=config.cluster.takeover_seconds,
        beats=True,
        is_known=lambda id: repo.has_ref(*(prefix + id for prefix in records.BY_ID)),
        belongs=partial(belongs, repo=repo, tip=tip),
    )


class LaneWorker(Daemon):
    def __init__(self, session: Session, home: Path, say: worker.Tell, queue: PostgresQueue):
        super().__init__(session, home, say)
        self.queue, self.followers = queue, LaneFollowers(queue)
        self._searched = 0.0

    def acquire(self) -> None:
        open_unless_away(self.queue)

    def release(self, reason: BaseException | None) -> None:
        with suppress(Fault):
            self.queue.release()

    def open(self) -> None:
        self.hear(Bell())
        self.take_desk(LaneDesk(self.session, self.queue, self.bell.ring))

    def turn(self) -> bool:
        self.queue.lane_of = lane_by(self.session.config, self.session.target)
        if monotonic() - self._searched >= self.session.config.cluster.poll_seconds:
            self._searched = monotonic()
            if self.recovered and self.queue.lanes.orphaned():
                worker.start(self.session, self.tell, patience=0.0)
        # A lane is kept until all have followed there.
        return super().turn() or not self.followers.pause

    def work(self) -> int:
        decided, asked = self.decide(), self.queue.asked()
        for number, words, again in asked:
            with self.queue.acting_for(words.pop("feeder", None)):
                answer = errands.carry_out(self.session, words, again=again)
            self.queue.done(number, answer)
        return decided + len(asked)

    def look_round(self) -> None:
        worker.look_at_held(self.session, self.tell)

    @property
    def pause(self) -> float:
        return min(self.session.config.cluster.poll_seconds, self.followers.pause)

    def wait(self, seconds: float) -> None:
        if self.queue.wait(seconds, self.bell):
            self.look_soon = True  # a verdict may be what something here waits for

    def lose(self, fault: Fault) -> None:
        _LOG.warning("%s; it is tried again", fault.message)
        self.recovered = False
        with suppress(Fault):
            self.queue.release()
        # A new session recovers what this one adopted, or took to answer.
        self.queue.store.close()


class LaneDesk(RequestDesk):
    """Requests of the worker itself, which belong to the feeder of the answered batch."""

    def __init__(self, session: Session, queue: PostgresQueue, ring: Callable[[], None]) -> None:
        super().__init__(session.stop, ring)
        self._queue = queue

    def refused(self, report: Report, session: Session) -> None:
        with self._queue.acting_for(self._queue.feeder_of(report.id)):
            super().refused(report, session)


class LaneFollowers(Followers):
    """Proposals of the worker's own lanes, and of the moved lanes it takes."""

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
                self.due = 0.0


def _places(session: Session, lanes: Iterable[str]) -> dict[str, object]:
    proposals = session.branches.tips(records.branch(""))
    return {lane: (session.branches.tip(lane), proposals) for lane in lanes}
