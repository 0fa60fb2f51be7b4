"""The daemon's upkeep: watchdog, retention, numbers, and git's housekeeping.

Everything runs in the main loop, a bounded piece at a time, so it neither delays a response by much
nor goes on when the loop hangs.

A service manager hears by sd_notify(3): datagrams to the socket in NOTIFY_SOCKET.  The watchdog's
ping comes from the main loop and from nowhere else: a thread of its own would go on pinging for a
daemon that hangs.  Without a manager every call does nothing.

Of finished batches, after `queue.retention_days`, only files below `done/` and `rejected/` go.
What git knows stays (commit, record, trailers and notes), and so do the ids, none of which is ever
given again, and what tells whose the bytes were.  What waits for anything is never removed.  The
clock of the last round is kept: one that was set ahead makes nothing old.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic, time

from patchq.gate.errors import Busy
from patchq.gate.git import records
from patchq.gate.git.repository import Repository
from patchq.gate.git.tidying import Tidying
from patchq.gate.land import reports
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.report import logs
from patchq.gate.report.schema import WAITING, Report
from patchq.gate.service import stats

_SEND_SECONDS = 1.0

_PAUSE_SECONDS = 3600.0
MOST_REMOVED = 100
_MOST_LOOKED_AT = 2000
_DAY = 86_400.0
# Who was away for so long keeps its files a little longer; more often a clock was set.
_LEAP = 90 * _DAY

_BUSY_SECONDS = 5.0  # the longest time without upkeep while there is always something to do
_WRITE_SECONDS = 1.0
_SOON = 0.05
_LATER = 60.0
RENEW = 500  # after so many verdicts the repository's handle forgets what it has read


class Manager:
    """The service manager that started this process, by what the environment says of it."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        # A path, or a name in Linux' abstract space, which begins with a zero.
        self._address = environ.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        # The watchdog is pinged three times within its time.
        self._pause = int(environ.get("WATCHDOG_USEC", "0")) / 3_000_000
        self._pinged = float("-inf")

    def ready(self) -> None:
        self._send("READY=1")

    def alive(self) -> None:
        """Ping the watchdog if it is time; cheap to call often."""
        now = monotonic()
        if self._pause and now - self._pinged >= self._pause:
            self._pinged = now
            self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # A manager that is gone, or does not listen, is no reason to stop the work.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(_SEND_SECONDS)
            out.sendto(text.encode(), self._address)


class Upkeep:
    """Housekeeping of one process; the configuration's paths begin at `home`."""

    def __init__(self, repo: Repository, home: Path, manager: Manager) -> None:
        self.manager = manager
        self.pause = _LATER  # seconds until `idle` wants to be called again
        self.verdicts: Counter[str] = Counter()  # how many verdicts there were, by their states
        self._repo, self._home = repo, home
        self._tidying = Tidying(repo)
        self._until_renewal = RENEW
        self._started = time()
        self._worked = self._wrote = monotonic()
        self._next_removal = 0.0
        self._written: tuple[Path, str] | None = None  # the file of numbers

    def count(self, report: Report) -> None:
        self.verdicts[report.state] += 1
        self._tidying.due |= report.commit is not None
        self._until_renewal -= 1

    def turn(self, session: Session) -> None:
        self.manager.alive()
        self.bound()
        if monotonic() - self._worked >= _BUSY_SECONDS:
            self.idle(session)

    def bound(self) -> None:
        """Keep packs and memory few, between two groups."""
        if self._tidying.combine() or self._until_renewal <= 0:
            self._until_renewal = RENEW
            self._repo.renew()

    def idle(self, session: Session, *, last: bool = False) -> None:
        """Do a piece of the upkeep; the `last` one always looks at the numbers."""
        over = self._remove_old(session)
        if last or monotonic() - self._wrote >= _WRITE_SECONDS:
            self._write(session)
        self._tidying.ask()
        logs.bound(session.queue_root / logs.FILE)
        self._worked = monotonic()
        self.pause = _LATER if over else _SOON

    def _remove_old(self, session: Session) -> bool:
        days = session.config.queue.retention_days
        if not days or monotonic() < self._next_removal:
            return True
        queue, now = session.queue, session.clock()
        limit = now - days * _DAY
        try:
            with reports.locked(session, wait=0.0):
                young = _counts_from(queue, now) > limit
                old = [] if young else queue.older(limit, _MOST_LOOKED_AT)
                gone = list(islice((id for id in old if _is_finished(session, id)), MOST_REMOVED))
                queue.forget(*gone)
        except Busy:
            return True  # a person decides on something; there is time
        if len(gone) == MOST_REMOVED:
            return False
        self._next_removal = monotonic() + _PAUSE_SECONDS
        return True

    def _write(self, session: Session) -> None:
        named = session.config.stats.prometheus
        if named is None or session.serves:
            return
        queue = store_queue(session.queue)
        gauges = {
            "inbox": queue.inbox.depth(),
            "held": len(session.queue.held()),
            "waiting": len(session.repo.refs(records.WAITING)),
            "start_time_seconds": self._started,
        }
        file = self._home / named, stats.metrics(queue.counts(), gauges)
        if file != self._written and stats.write(*file):
            self._written = file
        self._wrote = monotonic()


def _is_finished(session: Session, id: str) -> bool:
    report = None if session.repo.ref_target(records.WAITING + id) else session.queue.load(id)
    return report is not None and report.state not in WAITING


def _counts_from(queue: QueueEngine, now: float) -> float:
    """Return the time since which files have aged.

    That is since the clock was last set far ahead.
    """
    seen = float(queue.store.recall("clock.seen") or now)
    begun = float(queue.store.recall("clock.from") or 0.0)
    begun = now if now - seen > _LEAP else min(begun, now)
    queue.store.remember("clock.seen", repr(now))
    queue.store.remember("clock.from", repr(begun))
    return begun
