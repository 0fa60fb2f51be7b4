"""`patchq watch`: the daemon, in the foreground unless detached."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from argparse import SUPPRESS, Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path

from patchq.cli import arguments, confirm, opening, output
from patchq.gate.api import Gate
from patchq.gate.errors import QueueLocked, RepositoryFault
from patchq.gate.service.children import ForgeChild, TrainChild

_START_SECONDS = 20.0
_LOG = logging.getLogger("patchq")


ARGUMENTS = (
    arguments.Argument("--detach", action="store_true", help="go on in the background"),
    # Where the one in the background writes what it says.
    arguments.Argument("--log", metavar="FILE", type=Path, help=SUPPRESS),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    session = gate.session()
    if args.detach:
        return _detach(args, gate, session.queue_root)
    words = opening.command(args)
    more = ["--child", *(("--log", str(args.log)) if args.log else ())]
    children = (
        TrainChild([*words, "train", *more]),
        ForgeChild([*words, "forge", "sync", *more]),
    )
    ask = confirm.asker(args, session.config)
    with gate.service(partial(output.log_and_say, args), ask, lasting=True) as daemon:
        if sys.stderr.isatty():
            inbox = f"{session.config.queue.path}/inbox"
            output.notice(args, f"watching {inbox} for {session.target}")
        gate.setup_log(session.config, args.log)
        if (other := gate.location.difference(session.judged_by)) and other[1]:
            _LOG.warning("%s: %s", *other)
        with suppress(confirm.Quit):
            return daemon.serve(partial(gate.reload, args.log), children)
    return 130 if daemon.control.interrupted else 0


def _detach(args: Namespace, gate: Gate, root: Path) -> int:
    """Start the same command in a session of its own and wait until it holds the queue."""
    owner = gate.owner()
    if owner is not None:
        raise QueueLocked(f"the queue is served already, by process {owner.pid}", "patchq stop")
    log = root / "daemon.log"
    with log.open("ab") as out:
        child = subprocess.Popen(
            [*opening.command(args), "watch", "--log", str(log.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        owner = gate.owner()
        if owner is not None and owner.pid == child.pid:
            return output.emit(
                args,
                {"pid": child.pid, "log": str(log)},
                f"patchq watches as process {child.pid}; log: {log}",
            )
        time.sleep(0.02)
    raise RepositoryFault("the daemon did not start", f"see {log}")
