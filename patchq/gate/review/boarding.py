"""Acceptances, `refs/patchq/boarded/<id>`, and decisions that are taken back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.errors import Fault, UsageError
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import reports
from patchq.gate.pipeline import depends, notes, selection
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import (
    BoardedEntry,
    CommittedReport,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import decide, restack, send_back
from patchq.gate.review.candidates import changed_by_person
from patchq.gate.review.decide import Decided


class Acceptance(Struct, frozen=True):
    """Proposals of one target that a person accepts; of a single one perhaps chosen edits alone.

    `stack` takes what it is on top of along.  `seen` has the commits of their branches that
    the person has looked at; `by` is who accepts, by default the repository's identity.
    """

    ids: tuple[str, ...]
    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    stack: bool = False
    seen: dict[str, str] = {}
    fail_fast: bool = False
    wait: bool = True
    by: str | None = None

    @property
    def id(self) -> str:
        return self.ids[-1]


def board(
    session: Session,
    ids: Sequence[str],
    asked: Acceptance,
) -> tuple[dict[str, Decided], dict[str, Decided]]:
    """Mark proposals as accepted; return those that board, and those that cannot.

    Of a single one the chosen edits alone may be taken.
    """
    boards: dict[str, Decided] = {}
    refused: dict[str, Decided] = {}
    for id in ids:
        try:
            decided = _ready(session, id, boards, asked)
        except Fault as fault:
            report = session.queue.load(id)
            if len(ids) == 1 or report is None:
                raise
            decided = Decided(report, (Problem(fault.code, fault.message, fault.hint),))
        (refused if decided.problems else boards)[id] = decided
        if refused and asked.fail_fast:
            break
    # From above, so that a crash leaves no lower part of a stack that lands by itself.
    now = session.clock()
    changes = {
        id: partial(_marked, session=session, at=now + number / 1000, by=asked.by)
        for number, id in enumerate(boards)
    }
    made = reports.amend(session, dict(reversed(changes.items())))
    for id in boards.keys() - made.keys():
        raise decide.decided_already(id, "gone")
    return boards, refused


def _marked(report: Report, session: Session, at: float, by: str | None) -> Report | None:
    """Return the report of a proposal with its acceptance, once its mark is there."""
    id, who, branch = report.id, session.identity(), session.branches.tip(records.branch(report.id))
    if report.state != "proposed" or branch is None:
        raise decide.decided_already(id, report.state)
    mark = records.BOARDED + id
    refs.put(session.repo, mark, branch, f"{id} accepted", who)
    moment = document.moment(at)
    problems = [one for one in report.problems if not one.code.startswith("hook.")]
    return replace(
        report, boarded=BoardedEntry(by=by or who.name, at=moment, commit=branch), problems=problems
    )


def _ready(session: Session, id: str, before: Collection[str], asked: Acceptance) -> Decided:
    """Return the proposal with the chosen edits, or why it cannot board behind those `before`."""
    report = decide.proposal(session, id)
    _, branch = decide.tips(session, report)
    if asked.seen.get(id) not in (None, branch):
        return Decided(report, (decide.unseen(id),))
    if problem := _alone(session, report, before):
        return Decided(report, (problem,))
    if asked.only is None and not asked.without:
        return Decided(report)
    return _with_edits(session, report, branch, asked)


def _alone(session: Session, report: CommittedReport, before: Collection[str]) -> Problem | None:
    """Return why the proposal cannot land, since one below it has not boarded."""
    problem = depends.why_not_alone(session, report)
    stack = depends.under(session, report)
    aboard = {*before, *boarded(session)}
    if problem and not stack.why and aboard.issuperset(stack.ids):
        return None
    return problem


def _with_edits(
    session: Session, report: CommittedReport, branch: str, asked: Acceptance
) -> Decided:
    """Make the proposal anew with the chosen edits."""
    if branch != report.commit:
        return Decided(
            report,
            (changed_by_person(session, report, "only whole branches can land"),),
        )
    only = None if asked.only is None else frozenset(asked.only)
    selected = selection.select(report.edits, only, frozenset(asked.without))
    before = report.edits
    made = restack.with_edits(session, report, selected)
    if isinstance(made, tuple):
        return Decided(report, made)
    back = tuple(selection.brought_back(before, made.edits))
    return Decided(made, back=back, along=tuple(selection.taken_along(before, made.edits)))


def can_take_back(report: Report) -> bool:
    """Return True if the last decision on a change can be taken back."""
    discarded = report.state == "discarded" and has_commit(report)
    return discarded or bool(report.boarded) or waits_for_its_agent(report)


def take_back(session: Session, id: str) -> Decided:
    """Take the last decision on a change back, as long as nothing followed from it.

    That is an acceptance that waits for its train, a request for changes without an answer, or a
    discard.
    """
    decide.refresh(session)
    report = session.queue.load(id)
    if report is not None and report.state == "discarded" and has_commit(report):
        return Decided(_propose_again(session, report))
    if report is not None and waits_for_its_agent(report):
        return Decided(send_back.withdraw(session, id))
    decide.proposal(session, id)
    updated = reports.unboard(session, id)
    if updated is None:
        raise UsageError(f"{id} was not accepted", f"see `patchq show {id}`")
    return Decided(updated)


def _propose_again(session: Session, report: CommittedReport) -> Report:
    """Return a discarded proposal to its branch, and have it follow its target."""
    id, repo = report.id, session.repo
    mark, branch = records.DISCARDED + id, records.branch(id)
    tip, log = repo.ref_target(mark), f"patchq: {id}: proposed again"
    if tip is None or not repo.exists(tip):
        raise UsageError(f"the commits of {id} are not there any more", f"try `patchq retry {id}`")
    with reports.locked(session):
        move = BranchMove(branch, None, tip, log, session.identity())
        (moved,) = session.branches.land([move])
        if moved.fault is not None:
            raise moved.fault
        updated = document.with_state(report, "proposed", branch=branch)
        reports.put(session, updated)
        session.queue.sync()
        refs.move(repo, records.WAITING + id, None, report.commit, log, session.identity())
        notes.add(session, updated)
        refs.delete(repo, mark, tip)
    restack.follow(session, [id])
    return session.queue.load(id) or updated


def boarded(session: Session) -> list[str]:
    """Return the ids of all proposals that have boarded."""
    return [name.removeprefix(records.BOARDED) for name in session.repo.refs(records.BOARDED)]
