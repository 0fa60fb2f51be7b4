"""Feed a shared queue from this machine's inbox, and publish the verdicts here.

The feeder holds the lock of the local queue and claims from its inbox as the daemon does.  What it
claims it enters into the database, and keeps until a worker somewhere gave the verdict, with which
it does what a verdict on this machine would do.  So whatever reads the local queue sees no
difference, and a feeder that dies leaves claims, which the next one enters again, in vain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from patchq.gate.config.schema import Config
from patchq.gate.errors import Busy, Fault
from patchq.gate.land import elsewhere, worker
from patchq.gate.pipeline.process import lane_of
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import Claim
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.shelf import Troubles
from patchq.gate.service import cluster
from patchq.gate.service.daemon import SHORTEST_WAIT, Daemon

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue, RowChange

_LOG = logging.getLogger("patchq")
_MOST = 256
_TROUBLE = "cluster.database"
_LONGEST_WAIT = 5.0
_UNSERVED_SECONDS = 10.0


class Feeder(Daemon):
    """A machine's side of a cluster; it holds the queue's lock."""

    nap = 0.2
    entries: PostgresQueue

    def __init__(self, session: Session, home: Path, say: worker.Tell, *, lasting: bool = True):
        super().__init__(session, home, say, lasting=lasting)
        self._claims: dict[str, Claim] = {}  # those without a verdict here
        self._entered: set[str] = set()
        self._known = False
        self._away: bool | None = None  # the database, when it was last asked
        self._looks = inf

    def connect(self) -> None:
        """Open this machine's part of the database, and recover an earlier process's claims."""
        session = self.session
        cluster.target_of(session.config)
        database = cluster.database_of(session.config)
        from patchq.gate.queue.postgres.database import belongs
        from patchq.gate.queue.postgres.engine import PostgresQueue

        tip = session.branches.tip(session.target)
        checked = partial(belongs, repo=session.repo, tip=tip)
        name = cluster.feeder_name(session.queue_root)
        lane_of = lane_by(session.config, session.target)
        self.entries = PostgresQueue(
            database, name="feeder", lanes=(), lane_of=lane_of, belongs=checked, feeder=name
        )
        self.ends.callback(self.entries.close)
        self._claims.update((claim.token, claim) for claim in session.queue.recover())

    def open(self) -> None:
        self.connect()
        open_unless_away(self.entries)
        self.watch_inbox()

    def drain(self) -> None:
        """Feed until everything that waits here has its verdict or is held.

        Raises `Busy` where it waits in branches that no worker serves.
        """
        self.connect()
        self.entries.open()
        self._looks = monotonic() + _UNSERVED_SECONDS
        self.work_off()
        self.upkeep.idle(self.session, last=True)

    def waits(self) -> bool:
        lanes = self.lanes()
        if lanes and monotonic() > self._looks:
            self._looks = monotonic() + _UNSERVED_SECONDS
            if left := cluster.unserved(self.session.config) & lanes:
                raise Busy(
                    f"no worker serves {', '.join(map(repr, sorted(left)))}, so what is for that "
                    "waits in the queue",
                    "see `patchq cluster status`, start a worker, then run again",
                )
        return bool(lanes)

    def lanes(self) -> set[str]:
        """Return the branches that something here waits for which is not held."""
        held = {claim.token for claim in self.session.queue.held()}
        return {self.entries.lane(one) for token, one in self._claims.items() if token not in held}

    def lose(self, fault: Fault) -> None:
        """Enter everything anew once the database is back.

        Nothing is certain to be in it.
        """
        self._entered.clear()
        if not self._away:
            _LOG.warning("%s; it is tried again", fault.message)
        self._away = True
        Troubles(self.session.queue_root).note(_TROUBLE, fault.message, fault.hint or "")

    @property
    def pause(self) -> float:
        settled = store_queue(self.session.queue).inbox.unsettled()
        longest = self.session.config.cluster.poll_seconds if settled is None else settled
        return max(SHORTEST_WAIT, min(longest, _LONGEST_WAIT))

    def wait(self, seconds: float) -> None:
        self.entries.wait(seconds, self.bell)

    def turn(self) -> bool:
        return self.decide() > 0

    def decide(self) -> int:
        """Enter what came, publish what was decided; return how much that was."""
        queue = self.session.queue
        self.entries.lane_of = lane_by(self.session.config, self.session.target)
        if not self._known:
            self.entries.know((id, None, None) for id in queue.newest())
            self._known = True
        if self._claims.keys() <= self._entered:
            came = queue.claim(_MOST) or queue.recover()  # what a command handed over, or left
            self._claims.update((claim.token, claim) for claim in came)
        new = [claim for token, claim in self._claims.items() if token not in self._entered]
        if new:
            self.entries.enter(new)
            self._entered.update(claim.token for claim in new)
        changes = self.entries.changes()
        if changes:
            elsewhere.follow(self.session, [change.report for change in changes])
            with queue.together():
                done = [change for change in changes if self._publish(change)]
            queue.sync()
            for change in done:
                self.tell(change.report)
            self.entries.seen(changes)
            for token in [change.token for change in done if change.report.state != "held"]:
                self._claims.pop(token, None)
                self._entered.discard(token)
        if self._away is not False:
            Troubles(self.session.queue_root).over(_TROUBLE)
            self._away = False
        return len(new) + len(changes)

    def _publish(self, change: RowChange) -> bool:
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
        end(claim, report)
        return True

    def _claim_of(self, change: RowChange) -> Claim | None:
        """Return the claim here; None for a batch that has its verdict here.

        It is made where a worker made the batch for a caller here.  A request's is with the answer
        that it got.
        """
        claim, queue, id = self._claims.get(change.token), self.session.queue, change.report.id
        if claim and queue.token(id) == claim.token and queue.ended(id) is not None:
            # A fault came between its verdict here and the word of that.
            del self._claims[claim.token]
            claim = None
        if claim is None and queue.load(id) is None and queue.past(id) is None:
            row = self.entries.response(change)
            claim = queue.adopt(row.data, row.source.name, token=change.token)
            self._entered.add(claim.token)
        elif claim and claim.request:
            row = self.entries.response(change)
            if not row.request:
                claim = queue.answer(claim, row.data, row.generation)
        if claim:
            self._claims[claim.token] = claim
        return claim

    def _follow(self, change: RowChange) -> bool:
        """Store a later report; return True if its state is another one."""
        queue, report = self.session.queue, change.report
        before = queue.load(report.id)
        if before is None or before == report:
            return False
        queue.rewrite(report)
        return before.state != report.state


def open_unless_away(queue: PostgresQueue) -> None:
    try:
        queue.open()
    except Fault as fault:
        if not fault.retryable:
            raise


def lane_by(config: Config, target: str) -> Callable[[bytes, str], str]:
    return lambda data, name: lane_of(data, target, config.targets)
