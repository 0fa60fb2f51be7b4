"""Decisions on changes, made here, or in a cluster by the worker of their branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from subprocess import DEVNULL, Popen
from threading import Thread

from msgspec import to_builtins

from patchq.gate.api.location import Options
from patchq.gate.land.train import Trial as Trial
from patchq.gate.land.worker import Tell, waits_for_mending
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import Report
from patchq.gate.review import errands
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import Errand
from patchq.gate.service import cluster

_FOLLOWS_SECONDS = 10.0  # the wait for the feeder here, if one runs


def decide(session: Session, errand: Errand, tell: Tell = lambda report: None) -> Decided:
    """Return the outcome of a decision, made here or by the worker that serves the branch.

    `tell` gets the verdicts on changes made for it.  Raises what kept it from being done, and in a
    cluster `errors.Busy` where no worker serves the branch.
    """
    if not session.config.has_cluster:
        return errand.carry_out(session, tell)
    from patchq.gate.queue.postgres import errands as far
    from patchq.gate.queue.postgres.database import DatabaseServer

    report, feeder = session.queue.load(errand.id), cluster.feeder_name(session.queue_root)
    with closing(DatabaseServer(cluster.database_of(session.config), "asks")) as server:
        lane = report.target or session.target if report else far.lane_of(server, errand.id)
        if lane is None:
            raise history.unknown(session, errand.id)
        words = {**to_builtins(errand), "feeder": feeder}
        answer = far.ask(server, lane, words, cluster.SOON_SECONDS)
        if lock_owner(session.queue_root) is not None:
            # Else what is looked at next is shown as it was before this.
            far.follow(server, feeder, _FOLLOWS_SECONDS)
    done = errands.answered(answer)
    for verdict in done.verdicts:
        tell(verdict)
    return done.decided


def start_train(options: Options) -> None:
    """Land what was accepted in a process of its own; it ends at once where a train runs."""
    train = Popen([*options.command, "train"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL,
                  start_new_session=True)  # fmt: skip
    Thread(target=train.wait, daemon=True).start()


def candidates(context: RepoContext, verb: str) -> Iterator[Report]:
    """Yield the changes that a person may accept, send back, discard or retry."""
    if verb != "retry":
        yield from history.waiting(context)
        for claim in context.queue.held() if verb == "discard" else ():
            if claim.id and (report := context.queue.load(claim.id)):
                yield report
        return
    tried = set[str | None]()
    for id in context.queue.newest():
        if report := context.queue.load(id):
            tried.add(report.retry.of)
            again = {
                "rejected": id not in tried,
                "proposed": any(one.code == "target.moved" for one in report.problems),
                "held": waits_for_mending(report),
            }
            if again.get(report.state):
                yield report
