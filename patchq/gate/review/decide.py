"""What a person decides about a batch: a proposal lands or goes, a stored response is tried again.

Nothing here needs the queue's lock: branches move by compare-and-swap, and a report that was not
rewritten since patchq died is put right by `reports.reconcile` the next time.
"""

from __future__ import annotations

import logging
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.names import response_name
from patchq.core.model.values import Problem
from patchq.gate.errors import Fault, UsageError
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.git.branches.worktree import results
from patchq.gate.git.checkout import dirty
from patchq.gate.git.signing import is_signed
from patchq.gate.land import board, collisions, landing, presubmit, reports, worker
from patchq.gate.land.marks import catch_up
from patchq.gate.pipeline import depends, history, mode, selection
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import CandidateCommit, Decision
from patchq.gate.pipeline.session import Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.report import document, page
from patchq.gate.report.schema import LANDED, CommittedReport, Report, has_commit
from patchq.gate.review import from_git, restack

_LOG = logging.getLogger("patchq")
TRIES = 5


class Decided(Struct, frozen=True):
    """The report as it stands now, and why nothing was done, if so."""

    report: Report
    problems: tuple[Problem, ...] = ()
    back: tuple[str, ...] = ()
    """The edits that a choice brings back: what cancelled them, or stood before them, is left
    out."""
    along: tuple[tuple[str, str], ...] = ()
    """The edits that a choice leaves out without naming them, each with the one that it needs."""
    below: tuple[Report, ...] = ()
    """Those that landed with it, since it stands on them, in their order."""


def accept(
    session: Session,
    id: str,
    only: frozenset[str] | None = None,
    without: frozenset[str] = frozenset(),
    seen: str | None = None,
) -> Decided:
    """Land a proposal on its target, whole or the chosen edits of it; nothing is done where the
    branch does not end at the commit that the person has `seen`, if that is said."""
    for _ in range(TRIES):
        report = proposal(session, id)
        target = report.target
        tip, branch = tips(session, report)
        if seen not in (None, branch):
            return Decided(report, (unseen(id),))
        if problem := depends.alone(session, report):
            return Decided(report, (problem,))
        if doing := session.branches.busy(target):
            return Decided(report, (is_busy(target, doing),))
        decision = _landing(session, report, tip, branch, only, without)
        (decision,) = presubmit.check(
            [decision], session, as_it_stands=decision.commit == branch
        ).kept
        candidate = decision.candidate
        if candidate is None:
            errors = tuple(p for p in decision.problems if p.severity == "error")
            return Decided(report, errors or decision.problems or (_is_there(id, target),))
        if left := left_behind(session, id, tip, candidate):
            return Decided(report, left)
        log = f"patchq: {id}: {decision.subject}"
        value, who = refs.stage(session.repo, candidate.commit), session.identity()
        try:
            flush(session)
            with reports.locked(session):
                check_that_it_waits(session, id)
                goes = BranchMove(records.branch(id), branch, None, log, who)
                moved = landing.move_target(session, target, tip, value, log, [goes])
        finally:
            value.drop()
        if moved:
            flush(session)
            changes = changes_of(session, report, decision, candidate, branch)
            before, now = report.edits, changes.get("edits", report.edits)
            updated = reports.close(
                session, report, "accepted", branch, _choice_made(only, without), **changes
            )
            let_follow(session)
            back = tuple(selection.brought_back(before, now))
            return Decided(updated, back=back, along=tuple(selection.taken_along(before, now)))
    return Decided(report, (moved_on(report),))


def preview(session: Session, id: str, only: frozenset[str]) -> Decided:
    """What `accept` of these edits would land on the target as it is now: the report with its edits
    and its diff.  Hooks do not run, and nothing is written, so any machine of a cluster can tell.
    """
    report = _waits(session, id)
    tip, branch = tips(session, report)
    decision = _landing(session, report, tip, branch, only, frozenset())
    errors = tuple(problem for problem in decision.problems if problem.severity == "error")
    if errors or decision.candidate is None:
        return Decided(report, errors or decision.problems or (_is_there(id, report.target),))
    made = document.to_json(decision.outcome())
    before, now = report.edits, made.edits
    return Decided(
        replace(report, edits=now, diff=made.diff),
        back=tuple(selection.brought_back(before, now)),
        along=tuple(selection.taken_along(before, now)),
    )


def tips(session: Session, report: CommittedReport) -> tuple[str, str]:
    """Where the target and the proposal's branch end; `UsageError` where one is gone."""
    names = report.target, records.branch(report.id)
    target, branch = map(session.branches.tip, names)
    if target is None or branch is None:
        missing = names[0] if target is None else names[1]
        raise UsageError(f"the branch {missing} is gone", "see `patchq status`")
    return target, branch


def moved_on(report: CommittedReport) -> Problem:
    return Problem(
        "target.moved",
        f"{report.target} moved {TRIES} times while the batch was to land",
        f"run `patchq accept {report.id}` again",
    )


def unseen(id: str) -> Problem:
    return Problem(
        "target.moved",
        f"{records.branch(id)} has moved since it was looked at",
        "look at it as it is now, then decide",
    )


def changes_of(
    session: Session,
    before: CommittedReport,
    decision: Decision,
    candidate: CandidateCommit,
    branch: str,
) -> dict[str, Any]:
    """What the report says otherwise from now on; `branch` is where the proposal's was: at what a
    person made of it, perhaps, and that has landed, else the batch may have been made again."""
    hooks = list(decision.hooks) or before.hooks
    landed: dict[str, Any] = {"commit": candidate.commit, "tree": candidate.tree, "hooks": hooks}
    if candidate.commit == branch:
        own = branch == before.commit
        return landed if own else {**landed, **history.as_changed(session, before, branch)}
    if branch != before.commit:
        return landed
    made = document.to_json(decision.outcome())
    again: dict[str, Any] = {
        "edits": made.edits,
        "message": made.message,
        "size": made.size,
        "diff": made.diff,
    }
    return {**landed, **again}


def check_that_it_waits(session: Session, id: str) -> None:
    """Hooks may have run for long, and somebody else may have decided meanwhile."""
    now = session.queue.load(id)
    state = now.state if now else "gone"
    if state != "proposed":
        raise decided_already(id, state)


def decided_already(id: str, state: str) -> UsageError:
    return UsageError(
        f"batch {id} does not wait for review: it is {state}", f"see `patchq show {id}`"
    )


def _choice_made(only: frozenset[str] | None, without: frozenset[str]) -> str:
    if only is not None:
        return f"only edits {', '.join(sorted(only))} and what they need"
    return f"without edits {', '.join(sorted(without))} and what needs them" if without else ""


def _landing(
    session: Session,
    report: CommittedReport,
    tip: str,
    branch: str,
    only: frozenset[str] | None,
    without: frozenset[str],
) -> Decision:
    """The commit to land: the branch as it stands, or the batch made again on the target's tip."""
    id, target = report.id, report.target
    claim = restack.claim_of(report, session)
    as_it_is = as_it_stands(session, report, claim, tip, branch)
    whole = only is None and not without
    if whole and stands(session, report, tip, branch):
        return as_it_is
    if branch != report.commit:
        moved = f"{target} moved" if whole else "only whole branches can land then"
        problem = Problem(
            "target.moved",
            f"{records.branch(id)} holds commits of a person, and {moved}",
            "merge or rebase the branch by hand: git merge "
            + session.branches.name(records.branch(id)),
        )
        return as_it_is.with_verdict("rejected", problem)
    choice = replace(restack.choice_of(report), accepted=True)
    if not whole:
        selected = selection.select(report.edits, only, without)
        choice = replace(choice, edits=selected.taken, left=selected.left)
    return process(claim, session, Tips(session), choice)


def stands(session: Session, report: CommittedReport, tip: str, branch: str) -> bool:
    """Whether the branch, which ends at `branch`, can land on `tip` as it stands."""
    repo = session.repo
    if branch != report.commit:
        return repo.is_ancestor(tip, branch)
    # One from before commits were to be signed is made again, and gets its signature.
    ready = is_signed(repo.raw(branch)) or not session.signer.wanted
    return ready and repo.parents(branch) == (tip,)


def as_it_stands(
    session: Session, report: CommittedReport, claim: Claim, tip: str, branch: str
) -> Decision:
    """The landing of what a branch has on top of `tip`."""
    repo, target = session.repo, report.target
    candidate = CandidateCommit(
        target=target,
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
        target=target,
        tip=tip,
        candidate=candidate,
        subject=repo.message(branch).split("\n", 1)[0],
    )


def let_follow(session: Session) -> None:
    """The target has moved: what else waits for it follows.  The batch has landed whatever comes of
    that, and the next run does what is left."""
    try:
        restack.settle(session)
    except Fault as fault:
        _LOG.warning("%s; the next `patchq run` has the other batches follow", fault.message)


def is_busy(target: str, doing: str) -> Problem:
    return Problem(
        "target.busy",
        f"a work tree is {doing} {target}",
        f"finish or abort that, then accept again ({target} must not move meanwhile)",
    )


def _is_there(id: str, target: str) -> Problem:
    return Problem(
        "match.identical",
        f"all that {id} changes is on {target} already",
        f"nothing is left to land: `patchq discard {id}`",
    )


def left_behind(
    session: Session, id: str, tip: str, candidate: CandidateCommit
) -> tuple[Problem, ...]:
    """What keeps a work tree that has the target checked out from following."""
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


def discard(session: Session, id: str, seen: str | None = None, why: str | None = None) -> Decided:
    """Take a proposal away, and keep `why`; its tip stays at `refs/patchq/discarded/<id>`.  Nothing
    is done where the branch does not end at the commit that the person has `seen`, if that is
    said."""
    session.check_that_it_decides()
    for claim in session.queue.held():
        if claim.id == id and (known := session.queue.load(id)):
            updated = document.with_state(known, "discarded", reason=reports.in_words(why))
            session.queue.publish(claim, updated, page.to_markdown(updated))
            session.tell(updated)
            return Decided(updated)
    report = proposal(session, id)
    branch = session.branches.tip(records.branch(id))
    if seen not in (None, branch):
        return Decided(report, (unseen(id),))
    if branch and session.branches.checkouts(records.branch(id)):
        raise UsageError(
            f"{records.branch(id)} is checked out",
            "check out another branch there, then discard again",
        )
    updated = reports.close(
        session, report, "discarded", branch, why or "", reason=reports.in_words(why)
    )
    collisions.refresh(session, board.named(report))
    if above := board.board(session).above([id]):
        restack.follow(session, above)  # it cannot stay there, and says so
    return Decided(updated)


def proposal(session: Session, id: str) -> CommittedReport:
    """The proposal as it is now, to be decided on; `UsageError` where there is none."""
    session.check_that_it_decides()
    report = _waits(session, id)
    if session.repo.ref_target(records.WAITING + id) != report.commit:  # a crash came in between
        restack.follow(session, [id])
        updated = session.queue.load(id)
        return updated if updated and has_commit(updated) else report
    return report


def _waits(session: Session, id: str) -> CommittedReport:
    session.branches.refresh()
    catch_up(session)
    report = session.queue.load(id)
    if report is None and (past := session.queue.past(id)):
        raise UsageError(f"batch {id} does not wait for review: it is {past.state}")
    if report is None:
        raise history.unknown(session, id)
    sighting = history.observe(session, report)
    if sighting.state != "proposed" or not has_commit(report):
        raise decided_already(id, sighting.state)
    return report


def retry(session: Session, id: str, without: frozenset[str], tell: worker.Tell) -> None:
    """Decide again on the response of a batch, as `another_try` says; `tell` is called with the new
    report."""
    body, name, choice = another_try(session, id, without)
    worker.work([session.queue.adopt(body, name, choice.to_json())], session, tell, choice)


def another_try(session: Session, id: str, without: frozenset[str]) -> tuple[bytes, str, Choice]:
    """The response of a batch, its name, and how it is to be taken: but for the edits `without` and
    what needs them.

    `UsageError` for a batch that landed or goes on by itself, and where the queue has lost the
    response.
    """
    report = session.queue.load(id)
    if report is None and not from_git.gone(session, [id]):
        raise history.unknown(session, id)
    if report is None:
        raise UsageError(f"the queue has lost the response of {id}", "send it again")
    state = report.state
    if state in LANDED:
        raise UsageError(
            f"batch {id} has landed: it is {state}", f"to take it back first: patchq revert {id}"
        )
    if state == "duplicate":
        raise UsageError(
            f"batch {id} is a duplicate: there is nothing to try again", f"see `patchq show {id}`"
        )
    if state == "held" and not worker.waits_for_mending(report):
        raise UsageError(f"batch {id} is held, and goes on by itself", f"see `patchq show {id}`")
    body = session.queue.body(id)
    if body is None:
        raise UsageError(
            f"the response of {id} was never read, or is gone from the queue", "send it again"
        )
    choice = Choice(target=report.target, retries=id)
    if without:
        selected = selection.select(report.edits, None, without)
        choice = replace(choice, edits=selected.taken, left=selected.left)
    return body, response_name(report.source.name or ""), choice
