"""Decisions made here, or in a cluster by the worker of the branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from subprocess import DEVNULL, Popen
from threading import Thread
from time import monotonic

from msgspec import to_builtins
from msgspec.structs import replace

from patchq.core.model.values import EditOutcome, Source
from patchq.gate.api.location import Options
from patchq.gate.api.submitting import oversize
from patchq.gate.errors import Busy, Unreachable, UsageError
from patchq.gate.land import overlaps, worker
from patchq.gate.land.presubmit import Trial as Trial
from patchq.gate.land.worker import Tell
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.process import lane_of, process, wanted_id
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import AS_SENT, Choice, Session, Tips, select
from patchq.gate.queue import Claim
from patchq.gate.queue.engine import StoreQueue, store_queue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import Report
from patchq.gate.review import errands, restack
from patchq.gate.review.accept import Accept, Watch, unwatched
from patchq.gate.review.decide import Decided
from patchq.gate.review.errands import Errand
from patchq.gate.service import cluster
from patchq.gate.service.wake import Watcher

_FOLLOWS_SECONDS = 10.0  # the wait for the feeder here, if one runs
_LOOK_SECONDS = 1.0
_LANE_OF = "select lane from responses where id = :id"  # which another machine may have entered

# ---------------------------------------------------------------- looking ahead


def foresee(session: Session, data: bytes, name: str, *, corrects: bool) -> Report:
    """Return the report that a response would get now, with its overlaps."""
    if not corrects:
        llm = replace(session.config.llm, correct=False)
        session = replace(session, config=replace(session.config, llm=llm))
    with suppress(Unreachable):  # then it would be held for that
        session.branches.refresh(within=session.config.landing.poll_seconds)
    decision = _preview(session, unread(session, data, name))
    with session.repo.buffer.tentative():
        (decision,) = overlaps.warned([decision], session)
    return decision.report


def _preview(session: Session, claim: Claim, choice: Choice | None = None) -> Decision:
    """Return the verdict that a response would get now; nothing is written, and no id is taken."""
    id = claim.id or wanted_id(claim)
    if claim.id is None and isinstance(session.queue, StoreQueue):
        id = session.queue.next_id(id)
    dry = replace(choice or AS_SENT, dry_run=True)
    return process(replace(claim, id=id), session, Tips(session), dry)


def unread(session: Session, data: bytes, name: str) -> Claim:
    """Return a response that the queue does not have, to look at."""
    source = Source(name, sha256(data).hexdigest(), len(data))
    return Claim("", source, data, oversize(session, data))


class Question:
    """The report that a response would get now; `lands` if it can land as it is.

    `stopped` is true once a signal asks to end.
    """

    def __init__(self, session: Session, claim: Claim, stopped: Callable[[], bool]) -> None:
        self._session, self._claim, self.stopped = session, claim, stopped
        self._edits: Sequence[EditOutcome] = ()
        self.choose(None)
        self._edits = self.report.edits

    @property
    def ids(self) -> list[str]:
        """All edits of the response."""
        return [edit.id for edit in self._edits]

    def choose(self, only: frozenset[str] | None) -> None:
        """Look at these edits alone, or at all; raises `UsageError` for an unknown one."""
        self.choice: Choice | None = None
        if only is not None:
            self.choice = select(AS_SENT, self._edits, only, frozenset())
        decision = _preview(self._session, self._claim, self.choice)
        self.report = decision.report
        stuck = any(problem.code.startswith("worktree.") for problem in decision.problems)
        # A work tree keeps it from landing, or the proposal below it, which waits.
        self.lands = decision.state == "proposed" and not stuck and not decision.on


Ask = Callable[[Question], bool]


def confirm(session: Session, ask: Ask, stopped: Callable[[], bool], claim: Claim) -> Choice | None:
    """Return the choice by which a response lands; None where a person does not want it."""
    question = Question(session, claim, stopped)
    return replace(question.choice or Choice(), accepted=True) if ask(question) else None


# ---------------------------------------------------------------- responses


def apply(session: Session, data: bytes, name: str, choice: Choice | None, tell: Tell) -> Report:
    """Return the report on a response, taken by the choice; `tell` gets each verdict."""
    if session.config.has_cluster:
        report = _handed_over(session, data, name, choice)
        tell(report)
        return report
    reports: list[Report] = []
    claim = session.queue.adopt(data, name, choice)
    claim = replace(claim, problem=oversize(session, data))
    worker.work([claim], session, reports.append)
    restack.settle(session)
    for report in reports:
        tell(report)
    return next(one for one in reports if one.source.sha256 == claim.source.sha256)


def ask_model(session: Session, request: bytes, name: str, tell: Tell) -> None:
    """Ask the model for what the request asks, and decide on its answers."""
    if session.config.has_cluster:
        tell(_handed_over(session, request, name))
        return
    from patchq.gate.pipeline.requests import RequestDesk

    desk = RequestDesk(session.stop)
    session = replace(session, desk=desk)
    with closing(desk):
        desk.take(replace(session.queue.adopt(request, name), request=True), session)
        while desk.asked:
            worker.work(desk.answered(session, wait=1.0), session, tell)


def _handed_over(session: Session, data: bytes, name: str, choice: Choice | None = None) -> Report:
    """Return the report on a response that the feeder takes.

    `UsageError` where no feeder runs, and then nothing was done; `errors.Busy` where no worker
    serves the branch, and then the response waits in the queue.
    """
    if lock_owner(session.queue_root) is None:
        raise UsageError(
            "no daemon feeds the cluster from this machine, so nothing was done",
            "start `patchq watch`, then say it again",
        )
    queue = store_queue(session.queue)
    watcher = Watcher(queue.root)
    claim = queue.adopt(data, name, choice)
    queue.leave(claim)
    looks = monotonic() + cluster.SOON_SECONDS
    while True:
        for event in watcher.read():
            report = queue.load(event["batch"])
            if report and queue.token(report.id) == claim.token:
                return report
        if monotonic() > looks:
            named = choice and choice.target
            lane = named or lane_of(data, session.target, session.config.targets)
            if lane in cluster.unserved(session.config):
                raise Busy(
                    f"no worker serves the branch {lane!r}, so the response waits in the queue",
                    "see `patchq cluster status`, and start a worker; `patchq status` tells of "
                    "the verdict",
                )
            looks = monotonic() + _LOOK_SECONDS
        watcher.wait(_LOOK_SECONDS)


# ---------------------------------------------------------------- changes


def decide(session: Session, errand: Errand, watch: Watch | None = None) -> Decided:
    """Return the outcome of a decision.

    In a cluster it is made by the worker that serves the branch; else `watch` sees each run of a
    train's hooks.  Raises what kept it from being done, and in a cluster `errors.Busy` where no
    worker serves the branch.
    """
    if not session.config.has_cluster:
        if isinstance(errand, Accept):
            return errand.carry_out(session, watch or unwatched)
        return errand.carry_out(session)
    from patchq.gate.queue.postgres import database as far

    report, feeder = session.queue.load(errand.id), cluster.feeder_name(session.queue_root)
    with closing(far.DatabaseServer(cluster.database_of(session.config), "asks")) as server:
        lane = report.target or session.target if report else server.value(_LANE_OF, id=errand.id)
        if lane is None:
            raise history.unknown(session, errand.id)
        own = {"by": session.identity().name, "feeder": feeder}
        answer = far.ask(server, lane, own | to_builtins(errand), cluster.SOON_SECONDS)
        if lock_owner(session.queue_root) is not None:
            # Else what is looked at next is shown as it was before this.
            far.follow(server, feeder, _FOLLOWS_SECONDS)
    return errands.answered(answer)


def start_train(options: Options) -> None:
    """Land what was accepted in a process of its own; it ends at once where a train runs."""
    train = Popen([*options.command, "train"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL,
                  start_new_session=True)  # fmt: skip
    Thread(target=train.wait, daemon=True).start()


def candidates(context: RepoContext, verb: str) -> Iterator[Report]:
    """Yield the changes that a person may accept, send back, discard or retry."""
    if verb != "retry":
        yield from history.waiting(context)
        held = context.queue.held() if verb == "discard" else ()
        yield from filter(None, (context.queue.load(claim.id) for claim in held if claim.id))
        return
    tried = set[str | None]()
    for id in context.queue.newest():
        if report := context.queue.load(id):
            tried.add(report.retry.of)
            again = {
                "rejected": id not in tried,
                "proposed": any(one.code == "target.moved" for one in report.problems),
                "held": worker.waits_for_mending(report),
            }
            if again.get(report.state):
                yield report
