"""Stop the process that works on a queue."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from patchq.gate.errors import Busy, UsageError
from patchq.gate.queue.lock import STOP_NOW, Owner, activities, activity_text, lock_owner

_WAIT_SECONDS = 60.0
_PATIENCE_SECONDS = 1.0  # after so long it says what is waited for
_PAUSE_SECONDS = 0.02


def stop(root: Path, say: Callable[[str], None], *, now: bool) -> int | None:
    """Ask the process to end, and return its id, or None without one.

    It returns once the process has ended.  `say` gets what it works on, after a while and as often
    as that changes.
    """
    until = time.monotonic() + _WAIT_SECONDS
    owner = lock_owner(root)
    if owner is None:
        return None
    while owner.pid is None and time.monotonic() < until:  # it has not yet written its id
        time.sleep(_PAUSE_SECONDS)
        owner = lock_owner(root) or owner
    pid = _ask(owner, now=now)
    waits_for, patience = "", time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        holder = lock_owner(root)
        if holder is None or holder.pid not in (pid, None):
            return pid
        doing = activities(root) if time.monotonic() > patience else []
        names = " ".join(f"{one.batch}/{one.hook}" for one in doing)
        if doing and names != waits_for:
            waits_for = names
            say(activity_text(doing, batches=True))
        time.sleep(_PAUSE_SECONDS)
    doing_now = activity_text(activities(root), batches=True)
    raise Busy(
        f"process {pid} still works after {_WAIT_SECONDS:.0f} s{doing_now and f': {doing_now}'}",
        "it ends when that is done; `patchq stop --now` leaves the change to the next start",
    )


def _ask(owner: Owner, *, now: bool) -> int:
    if owner.pid is None or owner.host != socket.gethostname():
        raise UsageError(
            f"the queue is served by process {owner.pid} on {owner.host}", "run the command there"
        )
    try:
        with suppress(ProcessLookupError):  # it stopped by itself
            os.kill(owner.pid, STOP_NOW if now else signal.SIGTERM)
    except PermissionError:
        raise UsageError(
            f"process {owner.pid} belongs to another user", "run the command as that user"
        ) from None
    return owner.pid
