"""`patchq stop`: ask the daemon to finish the batch in hand and exit."""

from __future__ import annotations

import os
import signal
import socket
import time
from argparse import Namespace
from contextlib import suppress

from patchq.cli import output, places
from patchq.model.errors import Busy, UsageError
from patchq.queue.lock import lock_owner

_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.02


def run(args: Namespace) -> int:
    site = places.find(args)
    root = site.home / site.load_config().queue.path
    until = time.monotonic() + _WAIT_SECONDS
    owner = lock_owner(root)
    if owner is None:
        return output.emit(args, {"stopped": None}, "no daemon runs")
    while owner.pid is None and time.monotonic() < until:  # it has not yet said who it is
        time.sleep(_PAUSE_SECONDS)
        owner = lock_owner(root) or owner
    if owner.pid is None or owner.host != socket.gethostname():
        raise UsageError(
            f"the queue is served by process {owner.pid} on {owner.host}", "run the command there"
        )
    try:
        with suppress(ProcessLookupError):  # it stopped by itself
            os.kill(owner.pid, signal.SIGTERM)
    except PermissionError:
        raise UsageError(
            f"process {owner.pid} belongs to another user", "run the command as that user"
        ) from None
    while time.monotonic() < until:
        now = lock_owner(root)
        if now is None or now.pid not in (owner.pid, None):
            return output.emit(args, {"stopped": owner.pid}, f"process {owner.pid} has stopped")
        time.sleep(_PAUSE_SECONDS)
    raise Busy(f"process {owner.pid} still works after {_WAIT_SECONDS:.0f} s", "try again later")
