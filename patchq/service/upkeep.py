"""What the daemon does beside the work: say that it lives, remove what is old, write the numbers,
have git tidy up.

Everything runs in the main loop, a bounded piece at a time, so it neither delays a response by much
nor goes on when the loop hangs.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from patchq.git import records
from patchq.git.tidying import Tidying
from patchq.model.report import Report
from patchq.pipeline.world import World
from patchq.service.metrics import MetricsFile, Numbers
from patchq.service.retention import Retention
from patchq.service.stats import Running
from patchq.service.systemd import Manager

_BUSY_SECONDS = 5.0
"""The longest time without upkeep while there is always something to do."""
_WRITE_SECONDS = 1.0
_SOON = 0.05
_LATER = 60.0


class Upkeep:
    """Of one daemon.  The configuration's paths begin at `home`; `manager` is the service manager
    that started it, if any did.  A new configuration is a new `world`."""

    def __init__(self, world: World, home: Path, manager: Manager) -> None:
        self.manager = manager
        self.pause = _LATER
        """Seconds until `idle` wants to be called again."""
        self.world, self._home = world, home
        self.verdicts: Counter[str] = Counter()
        """How many verdicts there were, by their states."""
        self._retention = Retention()
        self._tidying = Tidying(world.repo)
        self._running: Running | None = None
        self._file: MetricsFile | None = None
        self._started = world.clock()
        self._worked = self._wrote = time.monotonic()

    def ready(self) -> None:
        self.manager.ready()
        self._say()

    def count(self, report: Report) -> None:
        """Take note of a verdict."""
        self.verdicts[report["state"]] += 1
        self._tidying.due |= report["commit"] is not None

    @property
    def summary(self) -> str:
        """The verdicts so far, for people; empty before the first."""
        return ", ".join(f"{count} {state}" for state, count in sorted(self.verdicts.items()))

    def turn(self) -> None:
        """Called in each round of the main loop."""
        self.manager.alive()
        self._say()
        if time.monotonic() - self._worked >= _BUSY_SECONDS:
            self.idle()

    def idle(self) -> None:
        """Do a piece of what there is to do."""
        over = self._count()
        if over:  # what is to be removed has been counted
            over = self._retention.turn(self.world)
            if time.monotonic() - self._wrote >= _WRITE_SECONDS:
                self._write()
        self._tidying.turn()
        self._worked = time.monotonic()
        self.pause = _LATER if over else _SOON

    def finish(self) -> None:
        """The same to its end, for who does not come back: old batches, once, and the numbers."""
        while not self._count():
            pass
        self._retention.turn(self.world)
        self._write()
        self._tidying.turn()

    def _count(self) -> bool:
        """Count some of what was not counted yet; True if nothing is left, or nobody asks."""
        if self._path() is None:
            self._running = None
            return True
        if self._running is None:
            self._running = Running(self.world.queue, self.world.queue_root)
        return self._running.turn()

    def _write(self) -> None:
        """Write the numbers, if the configuration names a file for them."""
        path, world = self._path(), self.world
        if path is None or self._running is None:
            return
        if self._file is None or self._file.path != path:
            self._file = MetricsFile(path)
        self._file.write(
            Numbers(
                counts=self._running.counts,
                inbox=world.queue.depth(),
                held=len(world.queue.held()),
                waiting=len(world.repo.refs(records.WAITING)),
                started=self._started,
                last_landing=self._running.last_landing,
            )
        )
        self._wrote = time.monotonic()

    def stop(self) -> None:
        self.manager.stopping()

    def _path(self) -> Path | None:
        named = self.world.config.stats.prometheus
        return self._home / named if named else None

    def _say(self) -> None:
        if self.manager.there:
            verdicts = self.summary or "nothing yet"
            self.manager.status(f"watching for {self.world.target}: {verdicts}")
