"""A proposal decided again: its response, what lands, and the obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Base, Problem, Source
from patchq.core.text import unified
from patchq.gate.errors import Fault, UsageError
from patchq.gate.git import records
from patchq.gate.git.signing import is_signed
from patchq.gate.pipeline import depends, history, judge
from patchq.gate.pipeline.judge import HAND_IN
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.report.message import subject
from patchq.gate.report.schema import IDLE, CommittedReport, Report


def choice_of(report: CommittedReport) -> Choice:
    """Return the choice of a batch: its base, and the edits not left out.

    Raises `UsageError` if the report has no room for all of them, and so does not say.
    """
    idle = [edit for edit in report.edits if edit.state in IDLE]
    if idle and (report.edits[-1].description or "").endswith("edits are left out here)"):
        raise UsageError(
            f"change {report.id} has more edits than its report holds, and some were not taken",
            "send the wanted ones in a new response",
        )
    # A backup has the id of the edit that it can replace.
    wanted = {edit.id for edit in report.edits if edit not in idle}
    return Choice(
        left={edit.id: edit.cancelled_by for edit in idle if edit.id not in wanted},
        base=Base(report.base.commit, report.base.how or "tip"),
        target=report.target,
        in_stack=report.stands_on is not None,
    )


def claim_of(report: Report, session: Session) -> Claim:
    """Return the response of a batch, to decide on it again.

    Raises `Fault` if the queue has lost it.
    """
    body = session.queue.body(report.id)
    if body is None:
        lost = _lost(session, report)
        raise Fault(lost.message, lost.hint)
    return Claim("", _source(report), body, id=report.id)


def _source(report: Report) -> Source:
    return Source(report.source.name or "", report.source.sha256, report.source.bytes or 0)


def lands_whole(session: Session, report: CommittedReport, branch: str) -> bool:
    """Return True if only the branch can land: a person changed it, or the response is lost."""
    return branch != report.commit or session.queue.body(report.id) is None


class Member(Struct, frozen=True):
    """A proposal of a train: its report, branch tip and landing commit."""

    report: CommittedReport
    branch: str
    decision: Decision

    @property
    def id(self) -> str:
        return self.report.id


def lower_first(session: Session, ids: Sequence[str]) -> list[str]:
    """Return the ids, each behind those that it is on top of."""
    found = [report for id in ids if (report := session.queue.load(id))]
    known = [report.id for report in depends.in_order(found)]
    return [*known, *(id for id in ids if id not in known)]


def decision_on(
    session: Session, report: CommittedReport, tips: Tips, branch: str, choice: Choice | None = None
) -> Decision:
    """Return the decision to land: the branch as it is, or the change made again."""
    tip = tips.of(report.target) or ""
    if choice is None and _can_land_unchanged(session, report, tip, branch):
        return _unchanged(session, report, tip, branch)
    if branch != report.commit:
        problem = changed_by_person(session, report, f"{report.target} moved")
        return _unchanged(session, report, tip, branch).with_verdict("rejected", problem)
    if session.queue.body(report.id) is None:
        problem = _lost(session, report)
        return _unchanged(session, report, tip, branch).with_verdict("rejected", problem)
    choice = choice or choice_of(report)
    choice = replace(choice, accepted=True, ahead=report.stands_on is not None)
    return process(claim_of(report, session), session, tips, choice)


def _can_land_unchanged(session: Session, report: CommittedReport, tip: str, branch: str) -> bool:
    repo = session.repo
    if branch != report.commit:
        return repo.is_ancestor(tip, branch)
    # One from before commits were to be signed is made again, and gets its signature.
    ready = is_signed(repo.raw(branch)) or not session.signer.wanted
    fixing = {step.hook.id for step in session.hooks.fixes}
    fixed = lands_whole(session, report, branch) or all(
        run.tip == tip for run in report.hooks if run.id in fixing
    )
    return ready and fixed and repo.parents(branch) == (tip,)


def _unchanged(session: Session, report: CommittedReport, tip: str, branch: str) -> Decision:
    repo = session.repo
    changes = repo.file_changes(tip, branch)
    paths = tuple(sorted(repo.changes(tip, branch)))
    decision = Decision(
        claim=Claim("", _source(report), b"", id=report.id),
        choice=Choice(accepted=True),
        session=session,
        id=report.id,
        state="applied",
        target=report.target,
        tip=tip,
        commit=branch,
        tree=repo.tree(branch).root,
        paths=paths,
        subject=subject(repo.message(branch)),
    )
    return judge.choose_mode(decision, changes, session)


def changes_of(session: Session, member: Member) -> dict[str, Any]:
    """Return what the report says otherwise, once the member has landed."""
    before, decision, branch = member.report, member.decision, member.branch
    hooks = list(decision.hooks) or before.hooks
    landed: dict[str, Any] = {"commit": decision.commit, "tree": decision.tree, "hooks": hooks}
    if branch != before.commit:  # a person changed it
        return {**landed, **history.as_changed(session, before, branch)}
    if decision.commit == branch:
        return landed
    made = decision.report
    return landed | {name: getattr(made, name) for name in ("edits", "message", "size", "diff")}


def is_same(session: Session, report: CommittedReport, seen: str, branch: str) -> bool:
    """Return True if patchq rebuilt what was seen, with the same change."""
    own = branch == report.commit
    return own and _content(session, seen) == _content(session, branch)


def _content(session: Session, commit: str) -> tuple[str, ...]:
    parents = session.repo.parents(commit)
    lines = unified.unified(session.repo.file_changes(parents[0], commit)).splitlines(keepends=True)
    return tuple("@@" if line.startswith("@@ ") else line for line in lines)


# ---------------------------------------------------------------- messages


def errors_of(decision: Decision) -> tuple[Problem, ...]:
    return tuple(decision.errors) or decision.problems


_IN_THE_WAY = ("worktree.dirty", "worktree.unseen", "target.busy")


def obstacles(decision: Decision, again: str) -> tuple[Problem, ...]:
    """Return the errors that keep the change from landing now.

    `again` is the way to try once more.
    """
    if decision.state == "applied":
        return ()
    if decision.state == "duplicate":
        message = f"all that {decision.id} changes is on {decision.target} already"
        hint = None if decision.choice.dry_run else f"`patchq discard {decision.id}`"
        return (Problem("match.identical", message, hint),)
    if decision.errors:
        return tuple(_for_a_person(decision, problem) for problem in errors_of(decision))
    waits = [one for one in decision.problems if one.code in _IN_THE_WAY]
    stops = list[Problem]()
    for problem in waits or decision.problems[-1:]:
        hint = (problem.hint or "").replace(HAND_IN, again)
        if problem.code == "target.busy":
            hint = f"finish or abort that, then {again}"
        stops.append(replace(problem, severity="error", hint=hint))
    return tuple(stops)


def _for_a_person(decision: Decision, problem: Problem) -> Problem:
    """Return the problem with commands for a person, where the target has moved."""
    if problem.code != "conflict.base" or decision.choice.dry_run:
        return problem
    id = decision.id
    cure = f"`patchq retry {id}` decides on its response anew, `patchq discard {id}` ends it; or "
    return replace(problem, hint=f"{cure}its agent is to {problem.hint}")


def refusal_of(member: Member) -> tuple[Problem, ...]:
    """Return what the hooks have against a member, with where it passed by itself."""
    problems, target = errors_of(member.decision), member.report.target
    refused = {run.id for run in member.decision.hooks if run.exit != 0}
    passed = [run for run in member.report.hooks if run.id in refused and run.exit == 0 and run.tip]
    if not passed or not member.decision.hooks[-1].others:
        return problems
    alone = f" (it passed by itself on {target} {(passed[0].tip or '')[:7]})"
    messages = [one.message.partition("\n") for one in problems]
    return tuple(
        replace(one, message=f"{first}{alone}{end}{rest}")
        for one, (first, end, rest) in zip(problems, messages, strict=True)
    )


def changed_by_person(session: Session, report: CommittedReport, why: str) -> Problem:
    branch = records.branch(report.id)
    return Problem(
        "target.moved",
        f"{branch} holds commits of a person, and {why}",
        f"merge or rebase the branch by hand: git merge {session.branches.name(branch)}",
    )


def _lost(session: Session, report: Report) -> Problem:
    branch = session.branches.name(records.branch(report.id))
    return Problem(
        "target.moved",
        f"the response of {report.id} is gone from the queue, so the change cannot be made again",
        f"merge or rebase its branch by hand: git merge {branch}; or restore `.patchq/` from a "
        f"backup, or `patchq discard {report.id}`",
    )
