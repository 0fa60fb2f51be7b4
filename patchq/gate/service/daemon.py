"""Decide on what comes into the inbox of one machine."""

from __future__ import annotations

import logging
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from patchq.gate.errors import Fault, Unreachable
from patchq.gate.intake.branches import BranchIntake
from patchq.gate.land import worker
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.session import Session
from patchq.gate.review import accept, restack
from patchq.gate.service.serve import LOOK_SECONDS, SHORTEST_WAIT, Service
from patchq.gate.service.wake import Doorbell

_LOG = logging.getLogger("patchq")
_PIECE_SECONDS = 0.05  # how long proposals are looked at before the inbox is


class Daemon(Service):
    """The process that decides on what comes into the inbox."""

    bell: Doorbell
    desk: RequestDesk

    def __init__(self, session: Session, home: Path, say: worker.Tell, *, lasting: bool = True):
        super().__init__(session, home, say, lasting=lasting)
        self.followers, self._branches = Followers(), BranchIntake()
        self.recovered = False
        # Changes that ring no bell are looked for again as soon as nothing comes in.
        self._looked, self.look_soon = monotonic(), True

    def open(self) -> None:
        self.bell = self.watch_inbox()
        self.take_desk(RequestDesk(self.session, self.bell.ring))
        if self.bell.warning:
            _LOG.warning("%s", self.bell.warning)

    def take_desk(self, desk: RequestDesk) -> None:
        self.desk = desk
        self.ends.callback(desk.close)
        self.session = replace(self.session, desk=desk)

    def turn(self) -> bool:
        self.desk.session = self.session
        if not self.recovered:
            worker.start(self.session, self.tell)
            self.recovered = True
        came = self.work() > 0
        self.look_soon = self.look_soon or came
        if monotonic() - self._looked >= LOOK_SECONDS or (self.look_soon and not came):
            self._looked, self.look_soon = monotonic(), False
            self.look_round()
        if came:
            self.followers.worked = monotonic()
        else:
            self.followers.turn(self.session)
        return came

    def work(self) -> int:
        """Decide on what came; return how much that was."""
        self._branches.turn(self.session)
        # What comes while the branches rest lands together.
        return 0 if self.session.branches.rest() else self.decide()

    def decide(self) -> int:
        self.desk.session = self.session
        return worker.turn(self.session, self.tell)

    def look_round(self) -> None:
        """Look for changes that ring no bell: by people, other machines and crashed commands."""
        _fetch(self.session, self.session.config.landing.poll_seconds)
        worker.look_at_held(self.session, self.tell)
        worker.start(self.session, self.tell, patience=0.0)

    @property
    def pause(self) -> float:
        settled = self.session.queue.unsettled()
        own = LOOK_SECONDS if settled is None else max(settled, SHORTEST_WAIT)
        rest = self.session.branches.rest() or inf
        return min(own, LOOK_SECONDS, self.followers.pause, rest)

    def wait(self, seconds: float) -> None:
        self.bell.wait(seconds)

    def begin_again(self, fault: Fault) -> None:
        if not fault.retryable:
            raise fault
        _LOG.warning("%s; it is tried again", fault.message)
        self.session.queue.release()
        self.session.queue.acquire(self.session.target)
        self.recovered = False
        self.wait(LOOK_SECONDS)

    def waits(self) -> bool:
        return bool(self.desk.open or worker.look_at_held(self.session, self.tell))

    def drain(self) -> None:
        self.take_desk(RequestDesk(self.session))
        _fetch(self.session)
        worker.start(self.session, self.tell)
        self._branches.look(self.session)
        restack.settle(self.session, rest=False)
        accept.resume(self.session)
        super().drain()
        if not self.control.stop:
            restack.settle(self.session)
        self.upkeep.idle(self.session, last=True)


def _fetch(session: Session, within: float = 0.0) -> None:
    with suppress(Unreachable):  # it is noted
        session.branches.refresh(within=within)


class Followers:
    """Proposals that follow their targets, a piece at a time.

    So no response waits.  While responses come, that takes a tenth of the time, and what only
    follows its target is left until there is a pause: the next response may move the target again.
    """

    def __init__(self) -> None:
        self.worked = self.due = 0.0  # when responses came last, and when there is to be more
        self.quiet = self.over = False  # whether responses came of late, and all had followed

    @property
    def pause(self) -> float:
        """Seconds until `turn` wants to be called again."""
        return max(self.due - monotonic(), 0.0)

    def turn(self, session: Session) -> None:
        if monotonic() >= self.due:
            self.due = self.follow(session) + monotonic()

    def follow(self, session: Session) -> float:
        """Have some follow; return the seconds until there is to be more."""
        began = monotonic()
        self.quiet = began - self.worked >= LOOK_SECONDS
        self.over = restack.settle(session, rest=self.quiet, seconds=_PIECE_SECONDS)
        if self.over:
            return LOOK_SECONDS
        return 0.0 if self.quiet else 9 * (monotonic() - began)
