"""Serve the queue: recover, then work whenever something is there, until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Self

from msgspec.structs import replace

from patchq.gate.errors import Fault, Interrupted, Unreachable, disk_fault
from patchq.gate.git.files import keep_heap_small
from patchq.gate.intake.branches import BranchIntake
from patchq.gate.land import board, worker
from patchq.gate.pipeline.context import GateRules
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.bell import Bell
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.shelf import Troubles
from patchq.gate.report.schema import Report
from patchq.gate.review import accept, restack
from patchq.gate.service.children import Child
from patchq.gate.service.serve import Control, by_tip, reloaded, why_held
from patchq.gate.service.upkeep import Manager, Upkeep
from patchq.gate.service.wake import Doorbell

_LOG = logging.getLogger("patchq")
SHORTEST_WAIT = 0.01
# Between two looks, also while responses come without a pause: what is held may wait for one.
LOOK_SECONDS = 2.0
_ENDED = "daemon.ended"
_FIRST_REST, _LONGEST_REST = 0.1, 5.0  # seconds after a fault that passes
_PIECE_SECONDS = 0.05  # how long proposals are looked at before the inbox is


class Daemon:
    """The process that decides on what comes into the inbox; it has the queue while its block runs.

    Each verdict goes to `say`.  A daemon is `lasting`, and heard by the service manager.
    """

    nap = SHORTEST_WAIT  # between two looks while others work on what waits here
    bell: Bell
    desk: RequestDesk

    def __init__(self, session: Session, home: Path, say: worker.Tell, *, lasting: bool = True):
        self.control = Control(end_now=session.cut.set, cut_short=session.stop.set)
        self.upkeep = Upkeep(session.repo, home, Manager() if lasting else Manager({}))
        pulse = partial(self.control.pulse, session.queue_root, self.upkeep.manager.alive)
        self.session, self._say = replace(session, pulse=pulse), say
        self.ends = ExitStack()
        self._held, self._rest = "", _FIRST_REST
        self.followers, self._branches = Followers(), BranchIntake()
        self.recovered = False
        # Changes that ring no bell are looked for again as soon as nothing comes in.
        self._looked, self.look_soon = monotonic(), True

    def __enter__(self) -> Self:
        self.control.install()
        self.acquire()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.ends.close()
        if error is None:
            with suppress(Fault):  # the next start looks at everything
                board.leave(self.session)
        self.release(disk_fault(error) if isinstance(error, OSError) else error)

    def acquire(self) -> None:
        self.session.queue.acquire()
        Troubles(self.session.queue_root).over(_ENDED)
        self.session = replace(self.session, lock=store_queue(self.session.queue).lock)

    def release(self, reason: BaseException | None) -> None:
        """Release the queue, and record the fault, if any, that ends the work."""
        self.session.queue.release()
        if isinstance(reason, Fault):
            words = f"the work ended of {reason.code}: {reason.message}"
            Troubles(self.session.queue_root).note(_ENDED, words, reason.hint or "start it again")

    def tell(self, report: Report) -> None:
        self.upkeep.count(report)
        self._say(report)

    def watch_inbox(self) -> None:
        queue = self.session.config.queue
        bell = Doorbell(self.session.queue_root / "inbox", queue.watch, queue.poll_seconds)
        if bell.warning:
            _LOG.warning("%s", bell.warning)
        self.hear(bell)

    def hear(self, bell: Bell) -> None:
        """Have signals end the waits for the bell."""
        self.bell = bell
        self.control.ring = bell.ring
        self.ends.callback(bell.close)

    def take_desk(self, desk: RequestDesk) -> None:
        self.desk = desk
        self.ends.callback(desk.close)
        self.session = replace(self.session, desk=desk)

    # ---------------------------------------------------------------- the loop

    def serve(self, load: Callable[[], GateRules], children: Sequence[Child] = ()) -> int:
        """Work until a signal or a fault ends it; return the exit code.

        `load` reads the configuration anew; the children run beside it.
        """
        try:
            with suppress(Interrupted), self.ends:  # what was in hand waits for the next start
                self._run(load, children)
        except Fault as fault:
            self.release(fault)
            hint = f" ({fault.hint})" if fault.hint else ""
            _LOG.error("%s: %s%s", fault.code, fault.message, hint)
            return fault.exit_status
        return 130 if self.control.interrupted else 0

    def _run(self, load: Callable[[], GateRules], children: Sequence[Child]) -> None:
        keep_heap_small()
        self.open()
        for child in children:
            self.ends.callback(child.close)
        self.upkeep.manager.ready()
        while not self.control.stop:
            try:
                self.upkeep.turn(self.session)
                self._renew(load)
                if self._is_held():
                    self.wait(LOOK_SECONDS)
                    continue
                more = self.turn()
                for child in children:
                    child.turn(self.session)
                if not more:
                    self.upkeep.idle(self.session)
                    self.wait(min(self.pause, self.upkeep.pause))
                self._rest = _FIRST_REST
            except Fault as fault:
                if not fault.retryable:
                    raise
                self.lose(fault)
                self.bell.wait(self._rest)
                self._rest = min(2 * self._rest, _LONGEST_REST)

    def _renew(self, load: Callable[[], GateRules]) -> None:
        if self.control.reload:
            self.control.reload = False
            self.session = reloaded(self.session, load)
        self.session = by_tip(self.session)

    def _is_held(self) -> bool:
        """Return True if no response is taken in now; log each change."""
        fault = why_held(self.session)
        reason = fault.message if fault else ""
        if reason != self._held:
            self._held = reason
            if fault:
                _LOG.error("%s: %s", reason, fault.hint)
            else:
                _LOG.info("responses are taken in again")
        return fault is not None

    # ---------------------------------------------------------------- a piece of work

    def open(self) -> None:
        """Open what a lasting process waits on; `ends` closes it."""
        self.watch_inbox()
        self.take_desk(RequestDesk(self.session.stop, self.bell.ring))

    def turn(self) -> bool:
        """Do a piece of the work; return true if there may be more."""
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
        """Do a piece of what there is to do; return how much that was."""
        return worker.turn(self.session, self.tell)

    def look_round(self) -> None:
        """Look for changes that ring no bell: by people, other machines and crashed commands."""
        _fetch(self.session, self.session.config.landing.poll_seconds)
        worker.look_at_held(self.session, self.tell)
        worker.start(self.session, self.tell, patience=0.0)

    @property
    def pause(self) -> float:
        """Seconds until `turn` wants to be called again, whatever happens."""
        settled = store_queue(self.session.queue).inbox.unsettled()
        own = LOOK_SECONDS if settled is None else max(settled, SHORTEST_WAIT)
        rest = self.session.branches.rest() or inf
        return min(own, LOOK_SECONDS, self.followers.pause, rest)

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, for so long at most."""
        self.bell.wait(seconds)

    def lose(self, fault: Fault) -> None:
        """Leave what is in hand to be recovered after a fault that passes."""
        _LOG.warning("%s; it is tried again", fault.message)
        self.session.queue.release()
        self.session.queue.acquire()
        self.recovered = False

    # ---------------------------------------------------------------- once

    def drain(self) -> None:
        """Work off what waits."""
        self.take_desk(RequestDesk(self.session.stop))
        _fetch(self.session)
        worker.start(self.session, self.tell)
        self._branches.look(self.session)
        restack.settle(self.session, rest=False)
        accept.resume(self.session)
        self.work_off()
        if not self.control.stop:
            restack.settle(self.session)
        self.upkeep.idle(self.session, last=True)

    def work_off(self) -> None:
        """Work until nothing waits.

        A file that is still being written is waited for as long as a quiet one takes to count as
        complete, and no longer.
        """
        quiet_until = monotonic() + self.session.config.queue.settle_seconds + 1
        while not self.control.stop:
            self.upkeep.bound()
            self.session = by_tip(self.session)
            if fault := why_held(self.session):
                raise fault
            if self.decide():
                continue
            pause = store_queue(self.session.queue).inbox.unsettled()
            quiet = pause is None or monotonic() > quiet_until
            if quiet and not self.waits():
                break
            self.session.pulse()
            sleep(min(max(pause or 0.0, self.nap), 0.2))

    def waits(self) -> bool:
        """Return true if what comes here by itself is still awaited."""
        return bool(self.desk.asked or worker.look_at_held(self.session, self.tell))


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
