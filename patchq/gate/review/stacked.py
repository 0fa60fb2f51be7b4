"""Accepting a stack: a proposal lands with those that it stands on, by one move of their target.

Each lands as its branch stands, so first each is made anew where it has to be, from below; and each
tree is shown to the hooks, since each becomes one of the target's history.  What lands is either
all of it or nothing.

Once the target has moved, all of them are in its history, whatever comes of this process: who looks
next finds that they have landed, as after a merge by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import landing, presubmit, reports
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import CommittedReport, Report, waits_for_its_agent
from patchq.gate.review import decide, restack
from patchq.gate.review.decide import Decided


class _Course(Struct, frozen=True):
    """One proposal of the stack: its report, the tip of its branch, and how it lands."""

    report: CommittedReport
    branch: str
    decision: Decision

    @property
    def log(self) -> str:
        return f"patchq: {self.report.id}: {self.decision.subject}"


def accept(session: Session, id: str, seen: str | None = None) -> Decided:
    """Land a proposal and those that it stands on, all or none; `seen` is the commit of its branch
    that the person has looked at, if that is said."""
    report = decide.proposal(session, id)
    for _ in range(decide.TRIES):
        stack = depends.under(session, report)
        if stack.why:
            problem = depends.alone(session, report)
            return Decided(report, (problem,) if problem else ())
        if not stack.below:
            return decide.accept(session, id, seen=seen)
        if asked := [one.id for one in stack.below if waits_for_its_agent(one.report)]:
            return Decided(report, (_sent_back(asked[-1]),))
        target = report.target
        if doing := session.branches.busy(target):
            return Decided(report, (decide.is_busy(target, doing),))
        report, courses, problem = _built(session, [*reversed(stack.ids), id])
        if problem:
            return Decided(report, (problem,))
        if seen not in (None, courses[-1].branch):
            return Decided(report, (decide.unseen(id),))
        checked = presubmit.check([one.decision for one in courses], session, as_it_stands=True)
        if problems := _refused(checked):
            return Decided(report, problems)
        first, top = courses[0].decision, courses[-1]
        tip = first.tip or ""
        whole = decide.as_it_stands(session, report, top.decision.claim, tip, top.branch).candidate
        if whole and (left := decide.left_behind(session, f"--stack {id}", tip, whole)):
            return Decided(report, left)
        kept = {decision.id: decision for decision in checked.kept}
        if _land(session, courses):
            made = [_close(session, one, kept[one.report.id]) for one in courses]
            decide.let_follow(session)
            return Decided(made[-1], below=tuple(made[:-1]))
    return Decided(report, (decide.moved_on(report),))


def _built(
    session: Session, ids: Sequence[str]
) -> tuple[CommittedReport, list[_Course], Problem | None]:
    """The proposals, the lowest first, each made anew on the one before where that moved; with the
    report on the last, and what keeps them from landing one after the other."""
    courses: list[_Course] = []
    problem: Problem | None = None
    for id in ids:
        restack.follow(session, [id])
        report = decide.proposal(session, id)
        tip, branch = decide.tips(session, report)
        tip = courses[-1].branch if courses else tip
        if problem is None and not decide.stands(session, report, tip, branch):
            problem = _loose(report, courses[-1].report.id if courses else report.target)
        claim = restack.claim_of(report, session)
        decision = decide.as_it_stands(session, report, claim, tip, branch)
        courses.append(_Course(report, branch, decision))
    return courses[-1].report, courses, problem


def _refused(checked: presubmit.Presubmit) -> tuple[Problem, ...]:
    """What the hooks have against one of them."""
    return tuple(
        replace(problem, message=f"{decision.id}: {problem.message}")
        for decision in checked.kept
        if decision.candidate is None
        for problem in decision.problems
    )


def _land(session: Session, courses: Sequence[_Course]) -> bool:
    """Move the target over all of them; False where one of their branches, or the target, is not
    as it was."""
    first, last, who = courses[0], courses[-1], session.identity()
    value = refs.stage(session.repo, last.branch)
    try:
        flush(session)
        with reports.locked(session):
            for one in courses:
                decide.check_that_it_waits(session, one.report.id)
                if session.branches.tip(records.branch(one.report.id)) != one.branch:
                    return False
            through = [(one.branch, one.log) for one in courses[:-1]]
            tip, target = first.decision.tip or "", last.report.target
            go = [
                BranchMove(records.branch(one.report.id), one.branch, None, one.log, who)
                for one in courses
            ]
            if not landing.move_target(session, target, tip, value, last.log, go, through):
                return False
    finally:
        value.drop()
    flush(session)
    return True


def _close(session: Session, course: _Course, decision: Decision) -> Report:
    assert decision.candidate
    changes = decide.changes_of(session, course.report, decision, decision.candidate, course.branch)
    return reports.close(session, course.report, "accepted", course.branch, "", **changes)


def _sent_back(id: str) -> Problem:
    return Problem(
        "review.changes",
        f"a person asked for changes of {id}, which it stands on, and no answer has come",
        f"`patchq accept {id}` lands that one as it is, if you want it so",
    )


def _loose(report: CommittedReport, on: str) -> Problem:
    """Why a proposal does not stand on what is to land before it."""
    id, code = report.id, "target.moved"
    said = next((p for p in report.problems if p.code == code), None)
    if said:
        return Problem(code, f"{id}: {said.message}", said.hint)
    return Problem(
        code,
        f"{records.branch(id)} does not stand on {on} as that is now",
        f"rebase it by hand, or `patchq retry {id}`",
    )
