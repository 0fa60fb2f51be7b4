"""A process that has the queue while it works: its signals, its upkeep, its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from patchq.gate.errors import Fault, disk_fault
from patchq.gate.land.worker import Tell
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.queue import Claim
from patchq.gate.queue.hand import Hand
from patchq.gate.report.schema import Report
from patchq.gate.service import cluster
from patchq.gate.service.feed import FeedingDaemon, feed_once, lane_by
from patchq.gate.service.serve import Control, Daemon, drain
from patchq.gate.service.trains import Child
from patchq.gate.service.upkeep import Manager, Upkeep

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.entries import Entries


class Tenure:
    """Has the queue while its block runs; a daemon's is `lasting`.

    Each verdict goes to `say`.  In a cluster the queue feeds the shared one.
    """

    def __init__(self, session: Session, home: Path, say: Tell, *, lasting: bool) -> None:
        self.control = Control()
        self.session = session
        self.upkeep = Upkeep(session, home, Manager() if lasting else Manager({}))
        self._say, self._closing = say, ExitStack()

    def __enter__(self) -> Self:
        self.control.install()
        self.control.end_now = self.session.cut.set
        self.session.queue.acquire(self.session.target)
        self.session = replace(self.session, hand=Hand(self.session.queue_root))
        self.upkeep.session = self.session
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._closing.close()
        self.release(disk_fault(error) if isinstance(error, OSError) else error)

    def release(self, reason: BaseException | None) -> None:
        """Let go of the queue, with a word on the fault that ends the work, if one does."""
        self.session.queue.release(reason if isinstance(reason, Fault) else None)

    def is_to_end(self) -> bool:
        """True once a signal asks for that."""
        return self.control.stop

    def ask_by(self, ask: Callable[[Claim], Choice | None]) -> None:
        """Have a person confirm what would land."""
        self.session = replace(self.session, ask=ask)

    def tell(self, report: Report) -> None:
        """Take note of a verdict, and show it."""
        self.upkeep.count(report)
        self._say(report)

    def serve(self, load: Callable[[], GateRules], children: Sequence[Child]) -> None:
        """Work until a signal ends it; `load` reads the configuration anew."""
        if not self.session.config.has_cluster:
            Daemon(self.session, self.control, self.tell, load, self.upkeep, children).run()
            return
        entries = self._entries()
        try:
            entries.open()
        except Fault as fault:  # a database that is away is waited for
            if not fault.retryable:
                raise
        FeedingDaemon(self.session, entries, self.control, self.tell, load, self.upkeep).run()

    def drain(self) -> None:
        """Work off what waits."""
        if not self.session.config.has_cluster:
            drain(self.session, self.control, self.tell, self.upkeep)
            return
        entries = self._entries()
        entries.open()
        unserved = partial(cluster.unserved, self.session.config)
        feed_once(self.session, entries, self.control, self.tell, self.upkeep, unserved)

    def _entries(self) -> Entries:
        """Return what this machine has in the database."""
        session = self.session
        cluster.target_of(session.config)
        database = cluster.database_of(session.config)
        from patchq.gate.queue.postgres import belonging
        from patchq.gate.queue.postgres.entries import Entries

        tip = session.branches.tip(session.target)
        belongs = partial(belonging.check, repo=session.repo, tip=tip)
        lane_of = lane_by(session.config, session.target)
        feeder = cluster.feeder_name(session.queue_root)
        entries = Entries(database, feeder, lane_of, belongs)
        self._closing.callback(entries.close)
        return entries
