"""Commands on a batch as values, carried out here or by its branch's worker.

One machine carries them out itself; in a cluster the worker does that serves the branch, and its
answer comes back.  Words and answers are JSON.  A command that is carried out again, since its
worker died before it answered, finds that it is done, and answers with the report as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, ValidationError, convert, to_builtins

from patchq.gate.errors import Fault, InDoubt, UsageError
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import reports, worker
from patchq.gate.pipeline import notes
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import CommittedReport, Report, has_commit, waits_for_its_agent
from patchq.gate.review import decide, from_git, restack, send_back
from patchq.gate.review.accept import Accept
from patchq.gate.review.decide import Decided, Discard
from patchq.gate.review.revert import Revert
from patchq.gate.review.send_back import Discuss, SendBack


def can_take_back(report: Report) -> bool:
    """Return True if the last decision on a change can be taken back."""
    discarded = report.state == "discarded" and has_commit(report)
    return discarded or bool(report.boarded) or waits_for_its_agent(report)


class TakeBack(Struct, frozen=True, tag_field="verb", tag="take-back"):
    """Take back the last decision on a change, if nothing followed from it.

    That is an acceptance that waits for its train, a request for changes without an answer, or a
    discard.
    """

    ends: ClassVar = None
    id: str

    def carry_out(self, session: Session, tell: worker.Tell = lambda report: None) -> Decided:
        decide.refresh(session)
        report = session.queue.load(self.id)
        if report is not None and report.state == "discarded" and has_commit(report):
            return Decided(_propose_again(session, report))
        if report is not None and waits_for_its_agent(report):
            return Decided(send_back.withdraw(session, self.id))
        decide.proposal(session, self.id)
        updated = reports.unboard(session, self.id)
        if updated is None:
            raise UsageError(f"{self.id} was not accepted", f"see `patchq show {self.id}`")
        return Decided(updated)


def _propose_again(session: Session, report: CommittedReport) -> Report:
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


class Supersede(Struct, frozen=True, tag_field="verb", tag="supersede"):
    """Have the batch `by`, of another branch, take its place: see `reports.supersede`."""

    ends: ClassVar = "superseded"
    id: str
    by: str

    def carry_out(self, session: Session, tell: worker.Tell) -> Decided:
        reports.supersede_one(self.id, self.by, session)
        return Decided(from_git.find(session, self.id)[0])


Errand = Accept | TakeBack | Discuss | Discard | SendBack | Revert | Supersede


class ErrandDone(Struct, frozen=True):
    """The result of a command, with the verdicts on batches that it made."""

    decided: Decided
    verdicts: Sequence[Report] = ()


class FarFault(Fault):
    """A fault that kept the worker from carrying the command out."""

    def __init__(self, fault: Mapping[str, Any]) -> None:
        super().__init__(fault["message"], fault["hint"])
        self.code, self.exit_status = fault["code"], fault["exit_status"]
        self.retryable = fault["retryable"]


_FAULT = ("code", "message", "hint", "exit_status", "retryable")


def carry_out(session: Session, words: Mapping[str, Any], *, again: bool) -> Mapping[str, Any]:
    """Carry out a command, perhaps once more, and return the answer.

    That may be a fault that concerns this command alone.  `errors.InDoubt` goes up: what was pushed
    is to be recovered first.
    """
    try:
        errand = convert(words, Errand)
    except ValidationError:
        return _refused(
            UsageError(
                "the worker that serves the branch does not know what is asked of it",
                "install the same patchq on all machines, then say it again",
            )
        )
    verdicts: list[Report] = []
    try:
        decided = errand.carry_out(session, verdicts.append)
    except InDoubt:
        raise
    except Fault as fault:
        report = session.queue.load(errand.id)
        if not (report and report.state == errand.ends and again):
            return _refused(fault)
        decided = Decided(report)
    done: Mapping[str, Any] = to_builtins(ErrandDone(decided, verdicts))
    return done


def _refused(fault: Fault) -> Mapping[str, Any]:
    return {"fault": {name: getattr(fault, name) for name in _FAULT}}


def answered(answer: Mapping[str, Any]) -> ErrandDone:
    """Return the result in the answer, or raise its fault."""
    if fault := answer.get("fault"):
        raise FarFault(fault)
    return convert(answer, ErrandDone)
