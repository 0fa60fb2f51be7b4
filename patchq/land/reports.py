"""Reports that are rewritten in place, by one process at a time.

A person's decision, the daemon and a command beside it may come to the same report at once.  So
whoever rewrites one reads it again under a lock, and no later state is ever written over by an
earlier one.  The kernel drops the lock with its process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from patchq.git import files
from patchq.git.linklock import WAIT_SECONDS
from patchq.model.errors import Busy, DiskFault
from patchq.model.report import Report
from patchq.pipeline.world import World
from patchq.report import page


@contextmanager
def locked(world: World, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Be the only one who rewrites reports of this queue; `errors.Busy` if another process is for
    `wait` seconds.  It cannot be taken twice."""
    with ExitStack() as stack:
        try:
            folder = files.opened(world.queue_root, os.O_RDONLY | os.O_DIRECTORY)
            fd = stack.enter_context(folder)
        except OSError as error:
            raise DiskFault(f"cannot open {world.queue_root}: {error.strerror}") from error
        if not files.flock(fd, wait):
            raise Busy(f"another process has rewritten reports for {wait:.0f} s", "try again later")
        yield


def put(world: World, updated: Report) -> Report:
    """Replace a report; the lock is held."""
    world.queue.rewrite(updated, page.to_markdown(updated))
    return updated


def amend(world: World, id: str, change: Callable[[Report], Report | None]) -> Report | None:
    """Replace the report of a batch by what `change` makes of it as it stands now, which is None
    where nothing is to change; returns the new report, durable, or None."""
    with locked(world):
        report = world.queue.load(id)
        updated = change(report) if report is not None else None
        if updated is None:
            return None
        put(world, updated)
        world.queue.sync()
        return updated
