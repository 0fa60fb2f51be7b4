"""A proposal of a train: what it would land, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.core.text import unified
from patchq.gate.git import records
from patchq.gate.git.branches.worktree import results
from patchq.gate.git.checkout import dirty
from patchq.gate.git.signing import is_signed
from patchq.gate.pipeline import depends, history, mode
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import CandidateCommit, Decision
from patchq.gate.pipeline.session import Choice, Session, Tips
from patchq.gate.report import document
from patchq.gate.report.schema import (
    CommittedReport,
)
from patchq.gate.review import origin

TRIES = 5  # times that a train is joined anew since its target moved, before it is left for later


class Member(Struct, frozen=True):
    """A proposal of a train: its report, the tip of its branch, and the commit that lands."""

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
    choice = choice or origin.choice_of(report)
    choice = replace(choice, accepted=True, ahead=report.stands_on is not None)
    return process(origin.claim_of(report, session), session, tips, choice)


def _can_land_unchanged(session: Session, report: CommittedReport, tip: str, branch: str) -> bool:
    """Return True if the branch, which ends at `branch`, can land on `tip` as it is."""
    repo = session.repo
    if branch != report.commit:
        return repo.is_ancestor(tip, branch)
    # One from before commits were to be signed is made again, and gets its signature.
    ready = is_signed(repo.raw(branch)) or not session.signer.wanted
    fixing = {step.hook.id for step in session.hooks.fixing}
    fixed = all(run.tip == tip for run in report.hooks if run.id in fixing)
    return ready and fixed and repo.parents(branch) == (tip,)


def _unchanged(session: Session, report: CommittedReport, tip: str, branch: str) -> Decision:
    """Return the landing of what a branch has on top of `tip`."""
    repo, claim = session.repo, origin.claim_of(report, session)
    candidate = CandidateCommit(
        target=report.target,
        parent=tip,
        base=tip,
        commit=branch,
        tree=repo.tree(branch).root,
        paths=tuple(sorted(repo.changes(tip, branch))),
    )
    return Decision(
        source=claim.source,
        claim=claim,
        choice=Choice(),
        id=report.id,
        mode=session.config.mode,
        state="applied",
        target=report.target,
        tip=tip,
        candidate=candidate,
        subject=repo.message(branch).split("\n", 1)[0],
    )


def changes_of(session: Session, member: Member) -> dict[str, Any]:
    """Return what the report says otherwise, once the member has landed."""
    before, decision, branch = member.report, member.decision, member.branch
    candidate = decision.candidate
    assert candidate
    hooks = list(decision.hooks) or before.hooks
    landed: dict[str, Any] = {"commit": candidate.commit, "tree": candidate.tree, "hooks": hooks}
    if branch != before.commit:  # a person changed it
        return {**landed, **history.as_changed(session, before, branch)}
    if candidate.commit == branch:
        return landed
    made = document.to_json(decision.outcome())
    return landed | {name: getattr(made, name) for name in ("edits", "message", "size", "diff")}


def left_behind(
    session: Session, id: str, tip: str, candidate: CandidateCommit
) -> tuple[Problem, ...]:
    """Return what keeps a work tree that has the target checked out from following."""
    where, changed = session.branches.checkouts(candidate.target), candidate.paths
    wanted = results(session.repo.changes(tip, candidate.commit)) if where else None
    again = f"run `patchq accept {id}` again"
    left = [problem for at in where if (problem := mode.unseen(at, changed, again))]
    if left:
        return tuple(replace(problem, severity="error") for problem in left)
    paths = [path for at in where for path in dirty(at, tip, changed, wanted)]
    problem = Problem(
        "worktree.dirty",
        "the work tree has uncommitted changes in " + ", ".join(paths),
        f"commit or stash them, then {again}",
        path=next(iter(paths), None),
    )
    return (problem,) if paths else ()


def is_same(session: Session, report: CommittedReport, seen: str, branch: str) -> bool:
    """Return True if patchq has rebuilt what was seen, and the change is the same."""
    own = branch == report.commit
    return own and _content(session, seen) == _content(session, branch)


def _content(session: Session, commit: str) -> tuple[str, ...]:
    """Return the change of a commit, without its line numbers."""
    parents = session.repo.parents(commit)
    lines = unified.unified(session.repo.file_changes(parents[0], commit)).splitlines(keepends=True)
    return tuple("@@" if line.startswith("@@ ") else line for line in lines)


# ---------------------------------------------------------------- messages


def errors_of(decision: Decision) -> tuple[Problem, ...]:
    errors = tuple(problem for problem in decision.problems if problem.severity == "error")
    return errors or decision.problems


def refusal_of(member: Member) -> tuple[Problem, ...]:
    """Return what the hooks have against a member, with where it passed by itself."""
    problems, target = errors_of(member.decision), member.report.target
    refused = {run.id for run in member.decision.hooks if run.exit != 0}
    passed = [run for run in member.report.hooks if run.id in refused and run.exit == 0 and run.tip]
    if not passed or not member.decision.hooks[-1].others:
        return problems
    alone = f" (it passed by itself on {target} {(passed[0].tip or '')[:7]})"
    return tuple(_with_words(problem, alone) for problem in problems)


def _with_words(problem: Problem, words: str) -> Problem:
    first, *rest = problem.message.split("\n")
    return replace(problem, message="\n".join((first + words, *rest)))


def moved_on(report: CommittedReport) -> Problem:
    return Problem(
        "target.moved",
        f"{report.target} moved {TRIES} times while the change was to land",
        f"run `patchq accept {report.id}` again",
    )


def left_below(id: str, on: str) -> Problem:
    return Problem("depends.failed", f"{id} is on top of {on}, which was left out", None)


def sent_back(id: str) -> Problem:
    return Problem(
        "review.changes",
        f"a person asked for changes of {id}, which it is on top of, and no answer has come",
        f"`patchq accept {id}` lands that one as it is, if you want it so",
    )


def busy(target: str, doing: str) -> Problem:
    return Problem(
        "target.busy",
        f"a work tree is {doing} {target}",
        f"finish or abort that, then accept again ({target} must not move meanwhile)",
    )


def nothing_left(id: str, target: str) -> Problem:
    return Problem(
        "match.identical",
        f"all that {id} changes is on {target} already",
        f"nothing is left to land: `patchq discard {id}`",
    )


def changed_by_person(session: Session, report: CommittedReport, why: str) -> Problem:
    branch = records.branch(report.id)
    return Problem(
        "target.moved",
        f"{branch} holds commits of a person, and {why}",
        f"merge or rebase the branch by hand: git merge {session.branches.name(branch)}",
    )
