"""Serve the queue: recover, then work whenever something is there, until it is stopped.

Signals only set flags and ring the bell; the batch in hand is always finished.
"""

from __future__ import annotations

import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Self

from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, Interrupted, UsageError, disk_fault
from patchq.gate.git.files import keep_heap_small
from patchq.gate.land.worker import Tell
from patchq.gate.pipeline.context import GateRules, branches_of, renewed
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.lock import STOP_NOW, Hand, activities, activity_text
from patchq.gate.report.schema import Report
from patchq.gate.service.children import Child
from patchq.gate.service.upkeep import Manager, Upkeep
from patchq.gate.service.wake import Doorbell

_LOG = logging.getLogger("patchq")
SHORTEST_WAIT = 0.01
# Between two looks, also while responses come without a pause: what is held may wait for one.
LOOK_SECONDS = 2.0


@dataclass
class Control:
    """Requests of signals; `now` leaves the batch in hand to the next start.

    `ring` ends a wait, `cut_short` what the batch in hand need not wait for, and `end_now` what
    runs beside the work.
    """

    stop: bool = False
    reload: bool = False
    interrupted: bool = False
    now: bool = False
    ring: Callable[[], None] = lambda: None
    cut_short: Callable[[], None] = lambda: None
    end_now: Callable[[], None] = lambda: None
    _announced: bool = False

    def install(self) -> None:
        """Catch the signals.

        SIGTERM and SIGINT stop after the batch in hand, SIGINT again or SIGUSR1 at once; SIGHUP
        reads the configuration anew.
        """
        for number in (signal.SIGTERM, signal.SIGINT, STOP_NOW, signal.SIGHUP):
            signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        again = number == STOP_NOW or (number == signal.SIGINT and self.interrupted)
        if again and not self.now:
            self.now = True
            self.end_now()
        self.interrupted |= number == signal.SIGINT
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
            self.cut_short()
        self.ring()

    def pulse(self, root: Path, alive: Callable[[], None]) -> None:
        """Raise `Interrupted` if the work is to end at once.

        What a stop waits for is logged once.  The thread that does the work calls it often.
        """
        alive()
        if self.now:
            raise Interrupted
        if self.stop and not self._announced:
            self._announced = True
            waits = activity_text(activities(root), batches=True) or "what is in hand"
            _LOG.info("stopping after %s; Ctrl-C again, or `patchq stop --now`, ends that", waits)


class Service(ABC):
    """A process that has the queue while its block runs.

    Each verdict goes to `say`.  A daemon is `lasting`, and heard by the service manager.
    """

    nap = SHORTEST_WAIT  # between two looks while others work on what waits here

    def __init__(self, session: Session, home: Path, say: Tell, *, lasting: bool = True) -> None:
        self.control = Control(end_now=session.cut.set, cut_short=session.stop.set)
        self.upkeep = Upkeep(session.repo, home, Manager() if lasting else Manager({}))
        pulse = partial(self.control.pulse, session.queue_root, self.upkeep.manager.alive)
        self.session, self._say = replace(session, pulse=pulse), say
        self.ends = ExitStack()
        self._held = ""

    def __enter__(self) -> Self:
        self.control.install()
        self.acquire()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.ends.close()
        self.release(disk_fault(error) if isinstance(error, OSError) else error)

    def acquire(self) -> None:
        self.session.queue.acquire(self.session.target)
        self.session = replace(self.session, hand=Hand(self.session.queue_root))

    def release(self, reason: BaseException | None) -> None:
        """Release the queue, and record the fault, if any, that ends the work."""
        self.session.queue.release(reason if isinstance(reason, Fault) else None)

    def tell(self, report: Report) -> None:
        self.upkeep.count(report)
        self._say(report)

    @abstractmethod
    def open(self) -> None:
        """Open what a lasting process waits on; `ends` closes it."""

    @abstractmethod
    def decide(self) -> int:
        """Do a piece of what there is to do; return how much that was."""

    def turn(self) -> bool:
        """Do a piece of the work; return true if there may be more."""
        return self.decide() > 0

    @property
    @abstractmethod
    def pause(self) -> float:
        """Seconds until `turn` wants to be called again, whatever happens."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, for so long at most."""

    @abstractmethod
    def begin_again(self, fault: Fault) -> None:
        """Leave what is in hand to be recovered; raises a fault that stays."""

    @abstractmethod
    def waits(self) -> bool:
        """Return true if what comes here by itself is still awaited."""

    def watch_inbox(self) -> Doorbell:
        queue = self.session.config.queue
        bell = Doorbell(self.session.queue_root / "inbox", queue.watch, queue.poll_seconds)
        self.ends.callback(bell.close)
        self.control.ring = bell.ring
        return bell

    def serve(self, load: Callable[[], GateRules], children: Sequence[Child] = ()) -> int:
        """Work until a signal or a fault ends it; return the exit code.

        `load` reads the configuration anew; the children run beside it.
        """
        try:
            with suppress(Interrupted):  # what was in hand waits for the next start
                self._run(load, children)
        except Fault as fault:
            self.release(fault)
            hint = f" ({fault.hint})" if fault.hint else ""
            _LOG.error("%s: %s%s", fault.code, fault.message, hint)
            return fault.exit_status
        return 130 if self.control.interrupted else 0

    def _run(self, load: Callable[[], GateRules], children: Sequence[Child]) -> None:
        keep_heap_small()
        try:
            self.open()
            for child in children:
                self.ends.callback(child.close)
            self.upkeep.ready(self.session)
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
                except Fault as fault:
                    self.begin_again(fault)
        finally:
            self.upkeep.manager.stopping()
            self.ends.close()

    def drain(self) -> None:
        """Work off what waits.

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
            pause = self.session.queue.unsettled()
            quiet = pause is None or monotonic() > quiet_until
            if quiet and not self.waits():
                break
            self.session.pulse()
            sleep(min(max(pause or 0.0, self.nap), 0.2))

    def _renew(self, load: Callable[[], GateRules]) -> None:
        if self.control.reload:
            self.upkeep.manager.reloading()
            self.control.reload = False
            self.session = reloaded(self.session, load)
            self.upkeep.ready(self.session)
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


def why_held(session: Session) -> Fault | None:
    """Return why no response may be taken in now, if there is a reason."""
    return session.judged_by.fault or replaced(session.queue_root / "inbox")


def by_tip(session: Session) -> Session:
    """Return the session under the rules at the home branch's tip."""
    rules = renewed(session.repo, session.judged_by)
    if rules.config is session.config:
        return session if rules is session.judged_by else replace(session, judged_by=rules)
    now = reloaded(session, lambda: rules)
    kept = replace(session.judged_by, refused_file=rules.data)
    return replace(session, judged_by=kept) if now is session else now


def reloaded(session: Session, load: Callable[[], GateRules]) -> Session:
    """Return the session under the rules as they are now.

    With wrong rules it stays the same, and the error is logged.
    """
    try:
        rules = load()
        config = rules.config
        if _cluster(config) != _cluster(session.config):
            raise UsageError("another `cluster` holds from the next start of the process")
        target = config.target or (rules.home.branch if rules.home else session.target)
        branches = branches_of(session.repo, session.queue_root, config, target, rules.home)
        if branches.tip(target) is None:
            raise UsageError(f"the target branch {target!r} does not exist")
    except UsageError as error:
        _LOG.error("the configuration is kept as it was: %s", error)
        return session
    old = session.config
    _LOG.info("configuration read anew")
    if (config.queue, config.limits.response_bytes) != (old.queue, old.limits.response_bytes):
        _LOG.warning("`queue` and `limits.response_bytes` hold from the next start of the daemon")
    if (config.landing, config.targets, target) == (old.landing, old.targets, session.target):
        branches = session.branches
    return replace(session, config=config, target=target, branches=branches, judged_by=rules)


def _cluster(config: Config) -> object:
    return config.has_cluster, config.cluster
