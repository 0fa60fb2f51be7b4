"""`patchq stop`: ask the daemon to finish the batch in hand and exit."""

from __future__ import annotations

import os
import signal
import time
from argparse import ArgumentParser, Namespace

from patchq.cli import common
from patchq.errors import Busy
from patchq.queue.directory import lock_owner
from patchq.repo import Repository

HELP = "stop the daemon after the batch in hand"
_WAIT_SECONDS = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    repo = Repository.open(args.directory)
    queue = common.open_queue(repo, common.load_config(args, repo))
    owner = lock_owner(queue.root)
    if owner is None or owner.pid is None:
        common.emit(args, {"stopped": None}, lambda: "no daemon runs")
        return 0
    os.kill(owner.pid, signal.SIGTERM)
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until:
        if lock_owner(queue.root) is None:
            common.emit(args, {"stopped": owner.pid}, lambda: f"process {owner.pid} has stopped")
            return 0
        time.sleep(0.02)
    raise Busy(f"process {owner.pid} still works after {_WAIT_SECONDS:.0f} s", "try again later")
