"""`patchq stop`: ask the daemon to finish the batch in hand and exit, or to leave that."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import visible
from patchq.gate.errors import Busy, UsageError
from patchq.gate.queue.hand import STOP_NOW, activities, activity_text
from patchq.gate.queue.lock import lock_owner

ARGUMENTS = (
    arguments.Argument(
        "--now", action="store_true", help="end its hooks, and leave the change to the next start"
    ),
)
_WAIT_SECONDS = 60.0
_PATIENCE_SECONDS = 1.0  # after so long it says what is waited for
_PAUSE_SECONDS = 0.02


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    root = location.home / location.rules_to_look().config.queue.path
    until = time.monotonic() + _WAIT_SECONDS
    owner = lock_owner(root)
    if owner is None:
        return output.emit(args, {"stopped": None}, "no daemon runs")
    while owner.pid is None and time.monotonic() < until:  # it has not yet written its id
        time.sleep(_PAUSE_SECONDS)
        owner = lock_owner(root) or owner
    if owner.pid is None or owner.host != socket.gethostname():
        raise UsageError(
            f"the queue is served by process {owner.pid} on {owner.host}", "run the command there"
        )
    try:
        with suppress(ProcessLookupError):  # it stopped by itself
            os.kill(owner.pid, STOP_NOW if args.now else signal.SIGTERM)
    except PermissionError:
        raise UsageError(
            f"process {owner.pid} belongs to another user", "run the command as that user"
        ) from None
    waiting, patience = "", time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        now = lock_owner(root)
        if now is None or now.pid not in (owner.pid, None):
            return output.emit(args, {"stopped": owner.pid}, f"process {owner.pid} has stopped")
        if time.monotonic() > patience:
            waiting = _say(args, root, waiting)
        time.sleep(_PAUSE_SECONDS)
    doing = activity_text(activities(root), batches=True)
    raise Busy(
        f"process {owner.pid} still works after {_WAIT_SECONDS:.0f} s{doing and f': {doing}'}",
        "it ends when that is done; `patchq stop --now` leaves the change to the next start",
    )


def _say(args: Namespace, root: Path, before: str) -> str:
    """Print the work that is waited for unless it is as `before`; return its names."""
    doing = activities(root)
    names = " ".join(f"{one.batch}/{one.hook}" for one in doing)
    if doing and names != before and not args.quiet:
        what = activity_text(doing, batches=True)
        print(visible(f"patchq: waiting for {what}; `--now` ends that"), file=sys.stderr)
    return names
