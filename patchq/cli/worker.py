"""`patchq worker`: decide on what a cluster's feeders entered, and land it on the shared remote."""

from __future__ import annotations

import logging
import os
import socket
from argparse import Namespace
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.cli import arguments, opening, output
from patchq.gate.api import cluster
from patchq.gate.api.location import Location
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, Interrupted
from patchq.gate.git import records
from patchq.gate.pipeline.context import RepoContext, branches_of
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import compose
from patchq.gate.queue.lock import Lock
from patchq.gate.report.schema import Report
from patchq.gate.service.feed import lane_by
from patchq.gate.service.lanes import LaneWorker
from patchq.gate.service.serve import Control
from patchq.gate.service.upkeep import Manager, Upkeep

if TYPE_CHECKING:  # the database's driver is an extra
    from patchq.gate.queue.postgres.engine import PostgresQueue

_LOG = logging.getLogger("patchq")
LOCK = "worker.lock"

ARGUMENTS = (
    arguments.Argument(
        "--lanes", metavar="PATTERN", action="append", help="only these target branches"
    ),
    arguments.Argument("--name", metavar="N", help="what `patchq cluster status` calls it"),
)


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    rules = location.rules()
    config = rules.config
    target = cluster.target_of(config)
    opening.gate(args).setup_log(config)
    database = cluster.database_of(config)
    root = opening.gate(args).queue(config).root
    lock = Lock(root / LOCK)
    lock.acquire()
    args.opened.callback(lock.release)
    branches = branches_of(location.repo, root, config, target, rules.home)
    queue = _open_queue(args, location, config, database, branches.tip(target))
    session = compose(
        RepoContext(location.repo, queue, root, config, target, branches=branches, judged_by=rules)
    )
    args.opened.callback(session.close)
    session = replace(session, clock=queue.clock, serves=True)
    control, upkeep = Control(), Upkeep(session, location.home, Manager())
    control.install()
    control.end_now = session.cut.set

    def tell(report: Report) -> None:
        upkeep.count(report)
        output.log_and_say(args, report)

    try:
        queue.open()
    except Fault as fault:  # one that is away is waited for
        if not fault.retryable:
            raise
    lanes = ", ".join(args.lanes or config.cluster.lanes)
    _LOG.info("worker %s serves %s", queue.store.name, lanes)
    try:
        with suppress(Interrupted):
            LaneWorker(session, control, tell, partial(_read_anew, args, location), upkeep).run()
    except Fault as fault:
        hint = f" ({fault.hint})" if fault.hint else ""
        _LOG.error("%s: %s%s", fault.code, fault.message, hint)
        return fault.exit_status
    finally:
        with suppress(Fault):
            queue.release()
    return 130 if control.interrupted else 0


def _read_anew(args: Namespace, location: Location) -> GateRules:
    rules = location.rules()
    opening.gate(args).setup_log(rules.config)
    return rules


def _open_queue(
    args: Namespace, location: Location, config: Config, database: str, tip: str | None
) -> PostgresQueue:
    from patchq.gate.queue.postgres import belonging
    from patchq.gate.queue.postgres.engine import PostgresQueue

    target = cluster.target_of(config)
    queue = PostgresQueue(
        database,
        name=args.name or f"{socket.gethostname()}-{os.getpid()}",
        lanes=args.lanes or config.cluster.lanes,
        lane_of=lane_by(config, target),
        takeover_seconds=config.cluster.takeover_seconds,
        beats=True,
        response_bytes=config.limits.response_bytes,
        is_known=lambda id: location.repo.has_ref(*(prefix + id for prefix in records.BY_ID)),
        belongs=partial(belonging.check, repo=location.repo, tip=tip),
    )
    args.opened.callback(queue.close)
    return queue
