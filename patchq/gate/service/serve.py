"""Serve the queue: recover, then work whenever something is there, until it is stopped.

Signals only set flags and ring the bell; the batch in hand is always finished.
"""

from __future__ import annotations

import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic, sleep
from types import FrameType

from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, Interrupted, Unreachable, UsageError
from patchq.gate.git.checkout import registered
from patchq.gate.git.files import keep_heap_small
from patchq.gate.intake.branch_intake import BranchIntake
from patchq.gate.land import reports, worker
from patchq.gate.pipeline.context import branches_of
from patchq.gate.pipeline.requests import RequestDesk
from patchq.gate.pipeline.rules import GateRules, renewed
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.hand import STOP_NOW, activities, activity_text
from patchq.gate.queue.inbox import replaced
from patchq.gate.review import accept, restack
from patchq.gate.service.trains import Child
from patchq.gate.service.upkeep import Upkeep

_LOG = logging.getLogger("patchq")
_SHORTEST_WAIT = 0.01
# Between two looks, also while responses come without a pause: what is held may wait for one.
LOOK_SECONDS = 2.0
_RUNS = 8  # reports that take in at once what hooks printed
_PIECE_SECONDS = 0.05  # how long proposals are looked at before the inbox is


@dataclass
class Control:
    """Requests of signals."""

    stop: bool = False
    reload: bool = False
    ring: Callable[[], None] = lambda: None
    """Ends a wait."""
    caught: list[int] = field(default_factory=list)
    cut_short: Callable[[], None] = lambda: None
    """Ends what the batch in hand need not wait for."""
    now: bool = False
    """True if the batch in hand is left to the next start."""
    end_now: Callable[[], None] = lambda: None
    """Ends what runs beside the work."""
    _said: bool = False

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
        self.caught.append(number)
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
            self.cut_short()
        self.ring()

    def pulse(self, session: Session, alive: Callable[[], None]) -> None:
        """Raise `Interrupted` if the work is to end at once; log once what a stop waits for.

        The thread that does the work calls it often.
        """
        alive()
        if self.now:
            raise Interrupted
        if self.stop and not self._said:
            self._said = True
            waits = activity_text(activities(session.queue_root), batches=True) or "what is in hand"
            _LOG.info("stopping after %s; Ctrl-C again, or `patchq stop --now`, ends that", waits)

    @property
    def interrupted(self) -> bool:
        return signal.SIGINT in self.caught


def log_end(fault: Fault) -> int:
    """Log the fault that ends a daemon; return the exit code."""
    hint = f" ({fault.hint})" if fault.hint else ""
    _LOG.error("%s: %s%s", fault.code, fault.message, hint)
    return fault.exit_status


class Service(ABC):
    """A process that serves a queue: each turn under the rules as they are, until it is stopped."""

    def __init__(
        self,
        session: Session,
        control: Control,
        tell: worker.Tell,
        load: Callable[[], GateRules],
        upkeep: Upkeep,
    ) -> None:
        self.session, self.control, self.tell = session, control, tell
        self._load, self.upkeep = load, upkeep

    @abstractmethod
    def turn(self) -> bool:
        """Do a piece of what there is to do; return true if there may be more."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, for so long at most."""

    @abstractmethod
    def begin_again(self, fault: Fault) -> None:
        """Leave what is in hand to be recovered, as after a crash; raises a fault that stays."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what the process waits on."""

    @property
    def pause(self) -> float:
        """Seconds until `turn` wants to be called again, whatever happens."""
        return LOOK_SECONDS

    def run(self) -> None:
        """Work until the control says stop."""
        keep_heap_small()
        self.upkeep.ready()
        intake = Intake()
        try:
            while not self.control.stop:
                try:
                    self.upkeep.turn()
                    self.session = renewed_session(
                        self.session, self.control, self.upkeep, self._load
                    )
                    if intake.is_held(self.session):
                        self.wait(LOOK_SECONDS)
                    elif not self.turn():
                        self.upkeep.idle()
                        self.wait(min(self.pause, self.upkeep.pause))
                except Fault as fault:
                    self.begin_again(fault)
        finally:
            self.upkeep.manager.stopping()
            self.close()


class Daemon(Service):
    """The process that decides on what comes into the inbox; `children` run beside it."""

    def __init__(
        self,
        session: Session,
        control: Control,
        tell: worker.Tell,
        load: Callable[[], GateRules],
        upkeep: Upkeep,
        children: Sequence[Child] = (),
    ) -> None:
        pulse = partial(control.pulse, session, upkeep.manager.alive)
        super().__init__(replace(session, pulse=pulse), control, tell, load, upkeep)
        control.cut_short = session.stop.set
        self._children, self.rounds = children, Rounds()
        self.followers, self._heads = Followers(), BranchIntake()
        self.recovered = False
        self._open()
        self.desk = self._new_desk()
        self.session = replace(self.session, desk=self.desk)

    def _open(self) -> None:
        from patchq.gate.service.doorbell import Doorbell  # only who waits needs watchdog

        queue = self.session.config.queue
        self._bell = Doorbell(self.session.queue_root / "inbox", queue.watch, queue.poll_seconds)
        self.control.ring = self._bell.ring
        _say_what_is_out_of_reach(self.session, self._bell.warning)

    def _new_desk(self) -> RequestDesk:
        return RequestDesk(self.session, self._bell.ring)

    def turn(self) -> bool:
        self.desk.session = self.session
        if not self.recovered:
            worker.start(self.session, self.tell)
            self.recovered = True
        came = self.work() > 0
        if self.rounds.due(came):
            self.look_round()
        if came:
            self.followers.worked()
        else:
            self.followers.turn(self.session)
        return came

    def work(self) -> int:
        """Decide on what came; return how much that was."""
        for child in self._children:
            child.turn(self.session)
        self._heads.turn(self.session)
        # What comes while the branches rest lands together.
        return 0 if self.session.branches.rest() else worker.turn(self.session, self.tell)

    def look_round(self) -> None:
        """Look for changes that ring no bell: by people, other machines and crashed commands."""
        _look_at_remote(self.session, self.session.config.landing.poll_seconds)
        worker.look_at_held(self.session, self.tell)
        worker.start(self.session, self.tell, patience=0.0)

    @property
    def pause(self) -> float:
        settled = self.session.queue.unsettled()
        own = LOOK_SECONDS if settled is None else max(settled, _SHORTEST_WAIT)
        rest = self.session.branches.rest() or inf
        return min(own, LOOK_SECONDS, self.followers.pause, self._heads.pause, rest)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)

    def begin_again(self, fault: Fault) -> None:
        if not fault.retryable:
            raise fault
        _LOG.warning("%s; it is tried again", fault.message)
        self.session.queue.release()
        self.session.queue.acquire(self.session.target)
        self.recovered = False
        self.wait(LOOK_SECONDS)

    def close(self) -> None:
        with ExitStack() as ends:
            for close in (self._bell.close, self.desk.close, *(it.close for it in self._children)):
                ends.callback(close)


def why_held(session: Session) -> Fault | None:
    """Return why no response may be taken in now, if there is a reason."""
    return session.judged_by.fault or replaced(session.queue_root / "inbox")


class Intake:
    """Intake of responses by one process; the log says when it is held and when it goes on."""

    def __init__(self) -> None:
        self._reason = ""

    def is_held(self, session: Session) -> bool:
        fault = why_held(session)
        reason = fault.message if fault else ""
        if reason != self._reason:
            self._reason = reason
            if fault:
                _LOG.error("%s: %s", reason, fault.hint)
            else:
                _LOG.info("responses are taken in again")
        return fault is not None


def _say_what_is_out_of_reach(session: Session, inbox: str | None) -> None:
    if inbox:
        _LOG.warning("%s", inbox)
    for checkout in registered(session.repo) if session.branches.remote is None else ():
        if checkout.unseen and checkout.branch:
            _LOG.warning(
                "the work tree %s is out of reach (%s), so changes for %s do not land: %s",
                checkout.workdir,
                checkout.unseen,
                checkout.branch,
                checkout.cure,
            )


class Rounds:
    """Times of the looks for changes that ring no bell; the first is due at once."""

    def __init__(self) -> None:
        self._last, self._soon = monotonic(), True

    def soon(self) -> None:
        """Look again as soon as nothing comes in: something may have changed."""
        self._soon = True

    def due(self, came: bool) -> bool:
        """Return True if it is time to look, which begins another round.

        `came`: there were responses a moment ago.
        """
        self._soon = self._soon or came
        rested = monotonic() - self._last
        if rested < LOOK_SECONDS and (came or not self._soon):
            return False
        self._last, self._soon = monotonic(), False
        return True


class Followers:
    """Proposals that follow their targets: a piece at a time, so that no response waits.

    While responses come, that takes a tenth of the time, and what only follows its target is
    left until there is a pause: the next response may move the target again.
    """

    def __init__(self) -> None:
        self._worked = self._next = 0.0
        self._more = False
        self.quiet = self.over = False  # whether responses came of late, and all had followed

    @property
    def pause(self) -> float:
        """Seconds until `turn` wants to be called again."""
        return 0.0 if self._more else max(self._next - monotonic(), 0.0)

    def worked(self) -> None:
        """Take note that there were responses."""
        self._worked = monotonic()

    def turn(self, session: Session) -> None:
        self._more = reports.keep_hook_outputs(session, _RUNS)
        if monotonic() >= self._next:
            self._next = self.follow(session) + monotonic()

    def follow(self, session: Session) -> float:
        """Have some follow; return the seconds until there is to be more."""
        began = monotonic()
        self.quiet = began - self._worked >= LOOK_SECONDS
        self.over = restack.settle(session, rest=self.quiet, seconds=_PIECE_SECONDS)
        if self.over:
            return LOOK_SECONDS
        return 0.0 if self.quiet else 9 * (monotonic() - began)


def _look_at_remote(session: Session, within: float = 0.0) -> None:
    """Fetch what others did to the branches of a remote."""
    with suppress(Unreachable):  # it is noted
        session.branches.refresh(within=within)


def renewed_session(
    session: Session, control: Control, upkeep: Upkeep, load: Callable[[], GateRules]
) -> Session:
    """Return the session under the rules as they are now; a signal has them read anew."""
    if control.reload:
        upkeep.manager.reloading()
        control.reload = False
        upkeep.session = session = reloaded(session, load)
        upkeep.ready()
    upkeep.session = session = by_tip(session)
    return session


def by_tip(session: Session) -> Session:
    """Return the session under the rules at the home branch's tip, or the same one."""
    rules = renewed(session.repo, session.judged_by)
    if rules.config is session.config:
        return session if rules is session.judged_by else replace(session, judged_by=rules)
    now = reloaded(session, lambda: rules)
    kept = replace(session.judged_by, refused_file=rules.data)
    return replace(session, judged_by=kept) if now is session else now


def reloaded(session: Session, load: Callable[[], GateRules]) -> Session:
    """Return the session under the rules as they are now, or the same one if they are wrong."""
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


def drain(
    session: Session,
    control: Control,
    tell: worker.Tell,
    upkeep: Upkeep,
) -> None:
    """Work off what waits, then return.  A file that is still being written is waited for as long
    as a quiet one takes to count as complete, and no longer."""
    control.cut_short = session.stop.set
    with closing(RequestDesk(session)) as desk:
        session = replace(
            session, desk=desk, pulse=partial(control.pulse, session, upkeep.manager.alive)
        )
        _look_at_remote(session)
        worker.start(session, tell)
        BranchIntake().look(session)
        restack.settle(session, rest=False)
        accept.resume(session)
        quiet_until = monotonic() + session.config.queue.settle_seconds + 1
        while not control.stop:
            upkeep.bound()
            desk.session = session = by_tip(session)
            if fault := why_held(session):
                raise fault
            if worker.turn(session, tell):
                continue
            pause = session.queue.unsettled()
            if desk.open:
                pause = _SHORTEST_WAIT
            elif pause is None or monotonic() > quiet_until:
                if worker.look_at_held(session, tell):
                    continue
                break
            session.pulse()
            sleep(min(max(pause or 0.0, _SHORTEST_WAIT), 0.2))
        if not control.stop:
            restack.settle(session)
    upkeep.finish()
