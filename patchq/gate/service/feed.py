"""Feed a shared queue from this machine's inbox, and publish here what comes of it.

The feeder holds the lock of the local queue and claims from its inbox as the daemon does.  What it
claims it enters into the database, and keeps until a worker somewhere gave the verdict, with which
it does what a verdict on this machine would do.  So whatever reads the local queue sees no
difference, and a feeder that dies leaves claims, which the next one enters again, in vain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING

from patchq.gate.config.schema import Config
from patchq.gate.errors import Busy, Fault
from patchq.gate.land import marks, worker
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import Session
from patchq.gate.pipeline.stages import lane_of
from patchq.gate.queue import Claim
from patchq.gate.queue.shelf import Troubles
from patchq.gate.service.serve import Control, Service, why_held
from patchq.gate.service.upkeep import Upkeep

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.entries import Entries, RowChange

_LOG = logging.getLogger("patchq")
_MOST = 256
_TROUBLE = "cluster.database"
_FIRST_REST, _LONGEST_REST = 0.1, 5.0
_UNSERVED_SECONDS = 10.0


def feed_once(
    session: Session,
    entries: Entries,
    control: Control,
    tell: worker.Tell,
    upkeep: Upkeep,
    unserved: Callable[[], set[str]],
) -> None:
    """Feed until everything that waits here has its verdict or is held, then return; `errors.Busy`
    where it waits in branches that are `unserved`.  A file that is still being written is waited
    for as long as a quiet one takes to count as complete."""
    feeder = Feeder(session, entries, tell)
    feeder.begin()
    began = monotonic()
    looks = began + _UNSERVED_SECONDS
    while not control.stop:
        upkeep.bound()
        if fault := why_held(feeder.session):
            raise fault
        if feeder.turn():
            continue
        pause = session.queue.unsettled()
        quiet = pause is None or monotonic() - began > session.config.queue.settle_seconds + 1
        if quiet and not feeder.waits():
            break
        if monotonic() > looks:
            looks = monotonic() + _UNSERVED_SECONDS
            if left := unserved() & feeder.waits():
                raise Busy(
                    f"no worker serves {', '.join(map(repr, sorted(left)))}, so what is for that "
                    "waits in the queue",
                    "see `patchq cluster status`, start a worker, then run again",
                )
        sleep(session.config.cluster.poll_seconds)
    upkeep.finish()


@dataclass
class Feeder:
    """A machine's side of a cluster; `open` are the claims without a verdict here."""

    session: Session
    entries: Entries
    tell: worker.Tell
    open: dict[str, Claim] = field(default_factory=dict)
    _entered: set[str] = field(default_factory=set)
    _known: bool = False
    _away: bool | None = None
    """True if the database was away when it was last asked; None before that."""

    def begin(self) -> None:
        """Take up what an earlier feeder, or a daemon before it, has left."""
        self.open.update((claim.token, claim) for claim in self.session.queue.recover())

    def waits(self) -> set[str]:
        """The branches that something here waits for which is not held."""
        held = {claim.token for claim in self.session.queue.held()}
        return {self.entries.lane(one) for token, one in self.open.items() if token not in held}

    def lost(self, fault: Fault) -> None:
        """The database is away: nothing is certain to be in it, and everything is entered anew."""
        self._entered.clear()
        if not self._away:
            _LOG.warning("%s; it is tried again", fault.message)
        self._away = True
        Troubles(self.session.queue_root).note(_TROUBLE, fault.message, fault.hint or "")

    def turn(self) -> bool:
        """Enter what came, publish what was decided; whether there was anything."""
        queue = self.session.queue
        if not self._known:
            self.entries.know(list(queue.newest()))
            self._known = True
        if self.open.keys() <= self._entered:
            came = queue.claim(_MOST) or queue.recover()  # what a command handed over, or left
            self.open.update((claim.token, claim) for claim in came)
        new = [claim for token, claim in self.open.items() if token not in self._entered]
        if new:
            self.entries.enter(new)
            self._entered.update(claim.token for claim in new)
        changes = self.entries.changes()
        if changes:
            marks.follow(self.session, [change.report for change in changes])
            with queue.together():
                done = [change for change in changes if self._publish(change)]
            queue.sync()
            for change in done:
                self.tell(change.report)
            self.entries.seen(changes)
            for token in [change.token for change in done if change.report.state != "held"]:
                self.open.pop(token, None)
                self._entered.discard(token)
        if self._away is not False:
            Troubles(self.session.queue_root).over(_TROUBLE)
            self._away = False
        return bool(new or changes)

    def _publish(self, change: RowChange) -> bool:
        """Do here what a worker did; return true if that is to be reported."""
        queue, report, claim = self.session.queue, change.report, self._claim_of(change)
        if claim is None:
            return self._follow(change)
        if (given := queue.reserve(claim, report.id)) != report.id:
            message = f"change {report.id} has its verdict, and {given} is what it is here"
            _LOG.error("%s", message)
            Troubles(self.session.queue_root).note(
                f"claim.{report.id}", message, "patchq fsck says which change has the id"
            )
            return False
        end = queue.hold if report.state == "held" else queue.publish
        end(claim, report, change.page)
        return True

    def _claim_of(self, change: RowChange) -> Claim | None:
        """The claim here, which is made where a worker made the batch for a caller here; None for a
        batch that has its verdict here.  A request's is with the answer that it got."""
        claim, queue, id = self.open.get(change.token), self.session.queue, change.report.id
        if claim and queue.token(id) == claim.token and queue.ended(id) is not None:
            del self.open[claim.token]  # a fault came between its verdict here and the word of that
            claim = None
        if claim is None and queue.load(id) is None and queue.past(id) is None:
            row = self.entries.response(change)
            claim = queue.adopt(row.data, row.source.name, token=change.token)
            self._entered.add(claim.token)
        elif claim and claim.request:
            row = self.entries.response(change)
            if row.generation:
                claim = queue.answer(claim, row.data, row.generation)
        if claim:
            self.open[claim.token] = claim
        return claim

    def _follow(self, change: RowChange) -> bool:
        """Keep a later state; return false for the same one again, as after a crash."""
        queue, report = self.session.queue, change.report
        before = queue.load(report.id)
        if before is None or before == report:
            return False
        queue.rewrite(report, change.page)
        return before.state != report.state


class FeedingDaemon(Service):
    """The process that feeds a cluster from this machine's inbox; it holds the queue's lock."""

    def __init__(
        self,
        session: Session,
        entries: Entries,
        control: Control,
        tell: worker.Tell,
        load: Callable[[], GateRules],
        upkeep: Upkeep,
    ) -> None:
        from patchq.gate.service.doorbell import Doorbell  # only who waits needs watchdog

        super().__init__(session, control, tell, load, upkeep)
        queue = session.config.queue
        self._bell = Doorbell(session.queue_root / "inbox", queue.watch, queue.poll_seconds)
        control.ring = self._bell.ring
        self._feeder, self._rest = Feeder(session, entries, tell), _FIRST_REST
        self._feeder.begin()

    def turn(self) -> bool:
        self._feeder.session = self.session
        self._feeder.entries.lane_of = lane_by(self.session.config, self.session.target)
        return self._feeder.turn()

    @property
    def pause(self) -> float:
        settled = self.session.queue.unsettled()
        longest = self.session.config.cluster.poll_seconds if settled is None else settled
        return max(0.01, min(longest, _LONGEST_REST))

    def wait(self, seconds: float) -> None:
        self._feeder.entries.wait(seconds, self._bell.fileno())
        self._bell.wait(0.0)
        self._rest = _FIRST_REST

    def begin_again(self, fault: Fault) -> None:
        if not fault.retryable:
            raise fault
        self._feeder.lost(fault)
        self._bell.wait(self._rest)
        self._rest = min(2 * self._rest, _LONGEST_REST)

    def close(self) -> None:
        self._bell.close()


def lane_by(config: Config, target: str) -> Callable[[bytes, str], str]:
    """Return a function that gives the lane of a response from its bytes and name."""
    return lambda data, name: lane_of(data, target, config.targets)
