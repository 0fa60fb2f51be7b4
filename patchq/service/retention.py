"""Removing finished batches from the queue after `queue.retention_days`.

Only files below `done/` and `rejected/` go.  What git knows stays (commit, record, trailers and
notes), and so do the ids, none of which is ever given again, and what tells whose the bytes were.
What waits for anything is never removed.  The sums are kept before the reports go (`tally`).
The clock of the last round is kept as well (`clock`): one that was set ahead makes nothing old.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from patchq.git import records
from patchq.land import reports
from patchq.model.errors import Busy
from patchq.model.report import WAITING, Report
from patchq.pipeline.world import World
from patchq.queue import spool
from patchq.queue.spool import Folder, disk_faults
from patchq.service import stats

_PAUSE_SECONDS = 3600.0
MOST_REMOVED = 100
_MOST_LOOKED_AT = 2000
_DAY = 86_400.0
NAME = "clock"
_LEAP = 90 * _DAY
"""Who was away for so long keeps its files a little longer; more often a clock was set."""


class Retention:
    """One queue's; `turn` does a bounded piece of the work, and a whole round once an hour."""

    def __init__(self) -> None:
        self._left: Iterator[str] | None = None
        self._next = 0.0

    def turn(self, world: World) -> bool:
        """Remove some batches that are old enough; True if the round is over."""
        days = world.config.queue.retention_days
        if not days or (self._left is None and monotonic() < self._next):
            return True
        now = world.clock()
        limit = now - days * _DAY
        try:
            with reports.locked(world, wait=0.0):
                if self._left is None:
                    young = _counts_from(world.queue_root, now) > limit
                    self._left = iter([] if young else list(world.queue.ids()))
                if self._piece(world, self._left, limit):
                    return False
        except Busy:
            return True  # a person decides on something; there is time
        self._left, self._next = None, monotonic() + _PAUSE_SECONDS
        return True

    def _piece(self, world: World, ids: Iterator[str], limit: float) -> bool:
        """Whether there may be more."""
        old: list[Report] = []
        more = False
        for looked, id in enumerate(ids, 1):
            at = world.queue.ended(id)
            if at is not None and at < limit and (report := _finished(world, id)):
                old.append(report)
            more = len(old) >= MOST_REMOVED or looked >= _MOST_LOOKED_AT
            if more:
                break
        if old:
            stats.keep(world.queue_root, old)
            for report in old:
                world.queue.forget(report["id"])
            world.queue.sync()
            stats.removed(world.queue_root)
        return more


def _finished(world: World, id: str) -> Report | None:
    """The report of a batch that nobody waits for any more."""
    if world.repo.ref_target(records.waiting(id)):
        return None
    report = world.queue.load(id)
    return report if report and report["state"] not in WAITING else None


@disk_faults
def _counts_from(root: Path, now: float) -> float:
    """Since when files have become older: the last time that the clock was far ahead of where the
    round before had seen it.  They are no older for that."""
    with Folder(root, lasting=False) as folder:
        clock = spool.decode(folder.read(NAME)) or {}
        last, begun = clock.get("seen"), clock.get("from")
        if not isinstance(last, float) or not isinstance(begun, float):
            last, begun = now, 0.0
        begun = now if now - last > _LEAP else min(begun, now)
        folder.put(NAME, spool.encode({"seen": now, "from": begun}))
        return begun
