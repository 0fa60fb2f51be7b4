"""`patchq watch`: the daemon, in the foreground unless detached."""

from __future__ import annotations

import logging
import subprocess
import time
from argparse import SUPPRESS, Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path

from patchq.cli import arguments, confirm, opening, output
from patchq.cli.tenure import Tenure
from patchq.gate.errors import Fault, Interrupted, QueueLocked, RepositoryFault
from patchq.gate.pipeline.rules import GateRules, difference
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.service.serve import Daemon
from patchq.gate.service.trains import ForgeChild, TrainChild

_START_SECONDS = 20.0
_LOG = logging.getLogger("patchq")


ARGUMENTS = (
    arguments.Argument("--detach", action="store_true", help="go on in the background"),
    # Where the one in the background writes what it says.
    arguments.Argument("--log", metavar="FILE", type=Path, help=SUPPRESS),
)


def run(args: Namespace) -> int:
    session = opening.gate(args).session()
    if args.detach:
        return _detach(args, session)

    def reload() -> GateRules:
        rules = tenure.location.rules()
        opening.gate(args).setup_log(rules.config, args.log)
        return rules

    words = opening.command(args)
    more = ["--child", *(("--log", str(args.log)) if args.log else ())]
    tenure = Tenure(args, session, partial(output.log_and_say, args), lasting=True)
    try:
        opening.gate(args).setup_log(session.config, args.log)
        if (other := difference(session.repo, session.judged_by)) and other[1]:
            _LOG.warning("%s: %s", *other)
        with suppress(confirm.Quit, Interrupted):  # what was in hand waits for the next start
            if session.config.has_cluster:
                from patchq.cli.feeding import feed_cluster  # takes the database's driver

                feed_cluster(args, tenure, reload)
            else:
                Daemon(
                    tenure.session,
                    tenure.control,
                    tenure.tell,
                    reload,
                    tenure.upkeep,
                    (
                        TrainChild([*words, "train", *more]),
                        ForgeChild([*words, "forge", "sync", *more]),
                    ),
                ).run()
    except Fault as fault:
        hint = f" ({fault.hint})" if fault.hint else ""
        _LOG.error("%s: %s%s", fault.code, fault.message, hint)
        session.queue.release(fault)
        return fault.exit_status
    return 130 if tenure.ended_early else 0


def _detach(args: Namespace, session: Session) -> int:
    """Start the same command in a session of its own and wait until it holds the queue."""
    owner = lock_owner(session.queue_root)
    if owner is not None:
        raise QueueLocked(f"the queue is served already, by process {owner.pid}", "patchq stop")
    log = session.queue_root / "daemon.log"
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
        owner = lock_owner(session.queue_root)
        if owner is not None and owner.pid == child.pid:
            return output.emit(
                args,
                {"pid": child.pid, "log": str(log)},
                f"patchq watches as process {child.pid}; log: {log}",
            )
        time.sleep(0.02)
    raise RepositoryFault("the daemon did not start", f"see {log}")
