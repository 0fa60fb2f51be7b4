"""A round: read both sides, work out the difference, and do it, one action after the other.

`serve` makes rounds until the process ends: what keeps one from its end is noted, and rests grow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from time import sleep, time

from patchq.forge import proposals, step
from patchq.forge.connect import ForgeReading
from patchq.forge.proposals import Lines, Proposal
from patchq.forge.step import Action, Writer
from patchq.forge.wire import Absent, Away, PullRequest, Rejected, seconds
from patchq.gate.api import Gate
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import Fault
from patchq.gate.git import records
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.queue.shelf import Troubles
from patchq.gate.queue.store import LOCKS
from patchq.gate.report.schema import CommentEntry, CommittedReport, has_commit
from patchq.gate.review import pull_requests, restack
from patchq.gate.review.pull_requests import ForgeRound, ShownRequest
from patchq.gate.service.cluster import feeder_name

_PATIENCE_SECONDS = 60.0  # a forge sees within so long that a request is merged
_MOST_QUIET = 20  # rounds that look at nothing more, as nothing changed
TROUBLE = "forge"
_LONGEST_REST = 300.0
_MOST_ROUNDS = 8  # in a row, as long as each decides something here


class Sync(ForgeReading):
    """The rounds of one process with one forge."""

    _seen: object = None
    _quiet = 0

    def rounds(self, gate: Gate, *, dry_run: bool = False) -> None:
        """Make rounds until one decides nothing here."""
        for _ in range(_MOST_ROUNDS):
            done = self.round(gate, dry_run=dry_run)
            if dry_run or not any(one.decides for one in done):
                break

    def round(self, gate: Gate, *, dry_run: bool = False) -> list[Action]:
        """Make one round; return its actions, which a dry run does not carry out."""
        session = gate.session(targeted=False)
        session.branches.refresh()
        if lock_owner(session.queue_root) is None:
            restack.settle(session)
        changed, sign = self.refresh(), _sign(session)
        self._quiet = 0 if changed or sign != self._seen else self._quiet + 1
        if 0 < self._quiet < _MOST_QUIET:
            return []
        done = Round(self, session).run(dry_run=dry_run)
        self._seen = None if done else sign  # what was just done is looked at once more
        return done

    def comments(self, gate: Gate, id: str) -> list[CommentEntry]:
        """Return the comments on a proposal that its agent has not got."""
        session = gate.session(targeted=False)
        report = session.queue.load(id)
        return Round(self, session).comments(report) if report and has_commit(report) else []


class Round(Writer):
    """One round; the copies are as they were at its start."""

    def __init__(self, sync: Sync, session: Session) -> None:
        super().__init__(session, sync)
        self._lines = Lines(session, self.copies)
        self._queue = feeder_name(session.queue_root)
        self._shown = dict[str, ShownRequest]()

    def run(self, *, dry_run: bool) -> list[Action]:
        """Carry out the actions, or in a dry run only print them."""
        done = list[Action]()
        for action in self._actions():
            self.reading.tell(str(action))
            done.append(action)
            if not dry_run:
                self.carry_out(action)
        if not dry_run:
            wire = self.forge.wire
            made = ForgeRound(time(), self._shown, seconds(wire.expires or ""), wire.left)
            pull_requests.keep(self.session.queue_root, made)
        return done

    # ------------------------------------------------------------ what is to be done

    def _actions(self) -> Iterator[Action]:
        session = self.session
        waiting = [
            report
            for report in history.waiting(session)
            if history.observe(session, report).state == "proposed"
        ]
        roots = {self._lines.root(report) for report in waiting}
        for report in depends.in_order(waiting):
            if has_commit(report):
                yield from self._readable(self._of_proposal(report))
        for request in list(self.reading.requests.values()):
            if _root(request) not in roots:
                yield from self._readable(self._of_decided(request))
        yield from self._left_over(roots)

    def _readable(self, actions: Iterator[Action]) -> Iterator[Action]:
        try:
            yield from actions
        except (Absent, Rejected) as fault:
            self.reading.warn(fault.message)

    def _of_proposal(self, report: CommittedReport) -> Iterator[Action]:
        proposal, request = self._seen(report)
        mark = proposals.mark_in(request.body) if request else None
        if request and mark and mark.queue != self._queue:
            self.reading.warn(f"#{request.number} belongs to another queue: it is left alone")
            return
        talk = self.reading.talk(request)
        for action in step.step(proposal, request, talk, self):
            yield action
            if action.decides:
                return
        request = self.reading.request_of(records.branch(proposal.root))
        if request and request.is_open:
            head = self.copies.there(proposal.root)
            state, text = proposals.status(report)
            if head and self.reading.status(head) != state:
                yield step.set_status(head, state, text)
            decisions = step.latest(proposal, request, talk, self)
            approved = [one.by for one in decisions if step.is_approval(one, proposal)]
            count = len(step.unsent(proposal, request, talk, self))
            shown = ShownRequest(request.number, request.url, tuple(approved), count)
            self._shown[report.id] = shown
            if request.head == head:
                yield from step.merge(proposal, request, self)

    def comments(self, report: CommittedReport) -> list[CommentEntry]:
        proposal, request = self._seen(report)
        if request is None:
            return []
        found = step.unsent(proposal, request, self.reading.talk(request), self)
        return [proposal.draft(thread, remark) for thread, remark in found]

    def _seen(self, report: CommittedReport) -> tuple[Proposal, PullRequest | None]:
        urls = {_root(one): one.url for one in self.reading.requests.values() if one.is_open}
        proposal = self._lines.proposal(report, self._queue, urls)
        return proposal, self.reading.request_of(records.branch(proposal.root))

    def _of_decided(self, request: PullRequest) -> Iterator[Action]:
        """Yield the actions on a request without a proposal."""
        session, mark = self.session, proposals.mark_in(request.body)
        if mark is None or mark.queue != self._queue:
            return
        id, _ = depends.standing(session, mark.id)
        report = session.queue.load(id)
        if report is None or report.state in ("proposed", "held", "rejected"):
            return
        tip = session.branches.tip(report.target or "")
        is_new = time() - seconds(request.updated.partition(" ")[0]) < _PATIENCE_SECONDS
        merged = is_new and tip is not None and session.repo.is_ancestor(request.head, tip)
        yield from step.ended(request, report, mark, merged)

    def _left_over(self, roots: Collection[str]) -> Iterator[Action]:
        open = {_root(one) for one in self.reading.requests.values() if one.is_open}
        for root in self.copies.published().keys() - roots - open:
            there = self.copies.there(root)
            if there is None:
                self.copies.forget(root, self.session.identity())
            elif there in self.copies.pushed(root):
                state = depends.standing(self.session, root)[1]
                if state in step.LANDED and self.reading.status(there) != "success":
                    yield step.set_status(there, "success", "accepted")
                yield Action(
                    f"delete {records.branch(root)} there",
                    partial(Writer.push, root=root, commit=None),
                )


def _sign(session: Session) -> object:
    """Return a value that changes with any local state that a round reads."""
    repo, remote = session.repo, session.config.forge.remote
    places = (records.WAITING, records.BOARDED, f"{records.REMOTES}{remote}/", records.BRANCHES)
    stamp = (session.queue_root / LOCKS).stat().st_mtime_ns
    return stamp, *(repo.refs(place) for place in places)


def _root(request: PullRequest) -> str:
    return request.branch.removeprefix(records.branch(""))


# ---------------------------------------------------------------- rounds for ever


def serve(shared: SharedGate, sync: Sync) -> None:
    """Keep both sides in step without end."""
    rest = 0.0
    while True:
        with shared.gate(writes=True) as gate:
            rest = turn(gate, sync, rest)
        sleep(rest)


def turn(gate: Gate, sync: Sync, rest: float) -> float:
    """Make rounds; return the seconds to rest, after a failure twice as many as before."""
    context = gate.context()
    troubles, pause = Troubles(context.queue_root), context.config.forge.poll_seconds
    try:
        sync.rounds(gate)
    except Fault as fault:
        troubles.note(TROUBLE, fault.message, fault.hint or "")
        asked = fault.seconds if isinstance(fault, Away) else 0.0
        return max(min(max(2 * rest, pause), _LONGEST_REST), asked)
    troubles.over(TROUBLE)
    return pause
