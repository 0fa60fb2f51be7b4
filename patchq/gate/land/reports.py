"""Reports that are rewritten in place, by one process at a time.

A person's decision, the daemon and a command beside it may come to the same report at once.  So
whoever rewrites one reads it again under a lock, and no later state is ever written over by an
earlier one.  The kernel drops the lock with its process.

A new batch takes the place of one that waits because it says so, or is its agent's next try.  What
a person did to a proposal by plain git (merged, rebased, deleted or changed its branch) is seen
wherever a batch is looked at (`history.observe`); `reconcile` puts it down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from patchq.core.model.values import Header, Problem, State
from patchq.core.text.quote import clip
from patchq.gate.errors import Busy, DiskFault, UsageError
from patchq.gate.git import files, records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.git.files import WAIT_SECONDS
from patchq.gate.pipeline import comments, depends, history, notes
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document, secrecy
from patchq.gate.report.schema import (
    CHANGES,
    LANDED,
    PENDING_CONFLICT,
    CommittedReport,
    Report,
    ReviewEntry,
    ReviewState,
    has_commit,
    waits_for_its_agent,
)

_LONGEST_REASON, _LONGEST_LINE = 2000, 200
Change = Callable[[Report], Report | None]


@contextmanager
def locked(session: Session, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Be the only one who rewrites reports of this queue; `errors.Busy` if another process is for
    `wait` seconds.  It cannot be taken twice."""
    with ExitStack() as stack:
        try:
            fd = stack.enter_context(files.opened(session.queue_root, os.O_RDONLY | os.O_DIRECTORY))
        except OSError as error:
            raise DiskFault(f"cannot open {session.queue_root}: {error.strerror}") from error
        if not files.flock(fd, wait):
            raise Busy(f"another process has rewritten reports for {wait:.0f} s", "try again later")
        yield


def put(session: Session, updated: Report) -> Report:
    before = session.queue.load(updated.id) if session.hooks.following else None
    session.queue.rewrite(updated)
    session.tell(updated, before)
    return updated


def amend(session: Session, changes: Mapping[str, Change]) -> dict[str, Report]:
    """Replace reports by what their changes make of them now; return the new ones, by their ids.

    They share the lock and the flush; a change returns None where nothing is to change.
    """
    made: dict[str, Report] = {}
    if not changes:
        return made
    with locked(session):
        for id, change in changes.items():
            report = session.queue.load(id)
            updated = change(report) if report is not None else None
            if updated is not None:
                made[id] = put(session, updated)
        if made:
            session.queue.sync()
    return made


def is_as_before(session: Session, id: str, branch: str) -> bool:
    """Return True if a proposal is undecided and its branch has not moved.

    `branch` is the commit (hex) at which the branch was.
    """
    report = session.queue.load(id)
    return (
        report is not None
        and report.state == "proposed"
        and session.branches.tip(records.branch(id)) == branch
    )


def supersede(new: str, header: Header, session: Session) -> None:
    """Supersede what the batch `new`, which has landed or is held, replaces; safe to repeat.

    It comes before the report on `new`, so that no crash leaves both waiting.  What waits on a
    branch that another process serves, that one supersedes.
    """
    for id in depends.replaced(session, new, header):
        if not session.queue.pass_on(id, {"verb": "supersede", "id": id, "by": new}):
            supersede_one(id, new, session)


def answer(decision: Decision, session: Session) -> ReviewEntry | None:
    """Return the review of the replaced batch, as answered by this one.

    None where no changes were asked for.
    """
    before = depends.sent_back(session, decision.id, decision.header)
    if before is None or not decision.commit:
        return None
    return comments.answered(session.repo, before, decision.commit, decision.header)


def supersede_one(id: str, new: str, session: Session) -> None:
    """Supersede the batch by `new`, if it waits; safe to repeat."""

    try:
        if end_held(session, id, partial(_ended, state="superseded", fields={"duplicate_of": new})):
            return
    except Busy:  # it gets its verdict at this very moment
        return
    report = session.queue.load(id)
    if report and report.state == "proposed" and has_commit(report):
        with suppress(UsageError):  # it was decided at this very moment
            why = f"superseded by {new}"
            close(session, report, "superseded", report.commit, why, duplicate_of=new)


def end_held(session: Session, id: str, change: Change) -> Report | None:
    """End a held batch by a change of its report; return the new one, None if it is not held."""
    report = session.queue.load(id)
    if report is None or report.state != "held":
        return None
    claim = next((claim for claim in session.queue.held() if claim.id == id), None)
    updated = change(report)
    if claim and updated:
        session.queue.publish(claim, updated)
        session.tell(updated)
    return updated if claim else None


def unboard(session: Session, id: str, *problems: Problem) -> Report | None:
    """Take the acceptance of a proposal back, for these reasons; return the new report."""

    def change(report: Report) -> Report | None:
        if report.boarded is None or report.state != "proposed":
            return None
        return document.with_problems(replace(report, boarded=None), *problems)

    updated = amend(session, {id: change}).get(id)
    _drop_marks(session, records.BOARDED + id)
    return updated


def _drop_marks(session: Session, *marks: str) -> None:
    for mark in marks:
        refs.put(session.repo, mark, None, "", session.identity())


# Warnings that say nothing any more once a batch is decided.
_WHILE_IT_WAITS = (PENDING_CONFLICT, CHANGES, "target.moved")


def reconcile(session: Session, ids: Collection[str] | None = None) -> list[Report]:
    """Record in the reports what was done by plain git; return those changed.

    `ids` are the batches to look at; None: all that wait.
    """
    changed = list[Report]()
    for report in list(history.waiting(session, ids)):
        id = report.id
        if session.repo.ref_target(records.WAITING + id) is None:
            continue  # it ended meanwhile
        sighting = history.observe(session, report)
        if sighting.state == "proposed":
            if waits_for_its_agent(report):  # a crash may have come before its note
                notes.add(session, report)
            continue
        commit = sighting.commit or report.commit
        tip = session.branches.tip(records.branch(id))
        changes: dict[str, Any] = {"commit": commit, "tree": session.repo.tree(commit).root}
        if commit != report.commit:
            changes = history.as_changed(session, report, commit)
        if sighting.state in LANDED and report.stands_on:
            changed += _squashed_below(session, report, commit)
        why = "" if report.boarded else sighting.note  # a train that died landed it
        changed.append(close(session, report, sighting.state, tip, why, **changes))
    return changed


def _squashed_below(session: Session, report: CommittedReport, landed: str) -> Iterator[Report]:
    """End the waiting of proposals below the batch that its landed commit holds too.

    It comes before the end of the batch itself, so that after a crash that still leads here.
    """
    repo, target = session.repo, session.branches.tip(report.target)
    own = session.branches.tip(records.branch(report.id)) or report.commit
    if target is None or repo.is_ancestor(own, target):
        return  # each is in the history itself
    if not history.holds_all(repo, own, landed, target):
        return
    for one in depends.under(session, report).below:
        note = f"landed by hand with {report.id}, as another commit"
        tree = repo.tree(landed).root
        yield close(session, one.report, "accepted", one.tip, note, commit=landed, tree=tree)


def close(
    session: Session,
    report: CommittedReport,
    state: State,
    tip: str | None,
    why: str = "",
    **fields: Any,
) -> Report:
    """End the waiting of a batch: its branch goes if it is still at `tip` and not
    checked out, its report and its note get the later state; returns the report.

    The mark that it waits goes last, so that `reconcile` finds what a crash leaves.
    """
    id, repo = report.id, session.repo
    with locked(session):
        now = session.queue.load(id) or report
        current = history.observe(session, now).state if state == "discarded" else now.state
        if state not in LANDED and current not in ("proposed", state):
            raise UsageError(f"change {id} does not wait for review: it is {current}")
        if session.branches.remote:
            _delete_own(session, id, tip, state)  # first, as a remote may be away
        if state not in LANDED:
            words = clip(" ".join((in_words(why) or state).split()), _LONGEST_LINE)
            last, log = tip or report.commit, f"patchq: {id}: {words}"
            refs.move(repo, records.DISCARDED + id, None, last, log, session.identity())
        _delete_own(session, id, tip, state)
        updated = _rewritten(session, now, state, why, fields)
        _drop_marks(session, records.BOARDED + id, records.WAITING + id)
    return updated


def _delete_own(session: Session, id: str, tip: str | None, state: State) -> None:
    """Delete the branch of a decided batch unless it was changed by hand.

    It has to be at `tip` or as patchq left it, and checked out nowhere.
    """
    branch, waits = records.branch(id), session.repo.ref_target(records.WAITING + id)
    own = session.branches.tip(branch)
    if own is None or own not in (tip, waits) or session.branches.checkouts(branch):
        return
    move = BranchMove(branch, own, None, f"patchq: {id}: {state}", session.identity())
    (gone,) = session.branches.land([move])
    if gone.fault is not None:
        raise gone.fault


def in_words(reason: str | None) -> str | None:
    """Return the reason of a decision as reports have it, without secrets."""
    return secrecy.without(clip(reason, _LONGEST_REASON)) if reason else None


def rewrite(session: Session, report: Report, state: State, why: str = "", **fields: Any) -> Report:
    """Put down a later state of a batch that does not wait any more; returns the new report."""
    with locked(session):
        return _rewritten(session, session.queue.load(report.id) or report, state, why, fields)


def _rewritten(
    session: Session, now: Report, state: State, why: str, fields: dict[str, Any]
) -> Report:
    updated = put(session, _ended(now, state, fields))
    session.queue.sync()
    notes.add(session, updated, " ".join((in_words(why) or "").split()))
    return updated


def _ended(report: Report, state: State, fields: dict[str, Any]) -> Report:
    """Return the report of a batch that no longer waits.

    A review that waited for an answer is answered if another batch replaced this one.
    """
    review = report.review
    if review is not None and waits_for_its_agent(report):
        ended: ReviewState = "answered" if state == "superseded" else review.state
        review = replace(review, state=ended)
        report = replace(report, review=review, retry=replace(report.retry, prompt=None))
    problems = [problem for problem in report.problems if problem.code not in _WHILE_IT_WAITS]
    return document.with_state(report, state, **{"problems": problems, **fields})
