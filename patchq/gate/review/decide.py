"""A person's decisions: a proposal lands or goes, a stored response is tried again.

Nothing here needs the queue's lock: branches move by compare-and-swap, and a report that was not
rewritten since patchq died is put right by `reports.reconcile` the next time.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from patchq.core.model.names import response_name
from patchq.core.model.values import Problem
from patchq.gate.errors import UsageError
from patchq.gate.git import records
from patchq.gate.land import board, overlaps, reports, worker
from patchq.gate.land.elsewhere import catch_up
from patchq.gate.pipeline import history
from patchq.gate.pipeline.session import Choice, Session, select
from patchq.gate.report import document
from patchq.gate.report.schema import LANDED, CommittedReport, Report, has_commit
from patchq.gate.review import from_git, restack


class Decided(Struct, frozen=True):
    """The report as it is now, and why nothing was done, if so."""

    report: Report
    problems: tuple[Problem, ...] = ()
    back: tuple[str, ...] = ()
    """The edits that a choice brings back: what cancelled them, or stood before them, is left
    out."""
    along: tuple[tuple[str, str], ...] = ()
    """The edits that a choice leaves out without naming them, each with the one that it needs."""
    others: tuple[Decided, ...] = ()
    """The outcomes of those that were decided on with it, in their order."""
    verdicts: tuple[Report, ...] = ()
    """The reports on changes that were made for it."""
    note: str = ""
    """What is left to a person."""


def branch_of(session: Session, id: str) -> str:
    """Return the tip of the proposal's branch; `UsageError` where it is gone."""
    if branch := session.branches.tip(records.branch(id)):
        return branch
    raise UsageError(f"the branch {records.branch(id)} is gone", "see `patchq status`")


def unseen(id: str) -> Problem:
    return Problem(
        "target.moved",
        f"{records.branch(id)} has moved since it was looked at",
        "look at it as it is now, then decide",
    )


def decided_already(id: str, state: str) -> UsageError:
    return UsageError(
        f"change {id} does not wait for review: it is {state}", f"see `patchq show {id}`"
    )


class Discard(Struct, frozen=True, tag_field="verb", tag="discard"):
    """Take a proposal or a held change away, and say `why`.

    Its tip stays at `refs/patchq/discarded/<id>`.  Nothing is done where its branch does not end
    at the commit that the person has `seen`, if that is given.
    """

    id: str
    why: str | None = None
    seen: str | None = None

    def carry_out(self, session: Session) -> Decided:
        refresh(session)
        id, reason = self.id, reports.in_words(self.why)
        ended = partial(document.with_state, state="discarded", reason=reason)
        if updated := reports.end_held(session, id, ended):
            return Decided(updated)
        report, name = proposal(session, id), records.branch(id)
        branch = session.branches.tip(name)
        if self.seen not in (None, branch):
            return Decided(report, (unseen(id),))
        made = reports.close(session, report, "discarded", branch, self.why or "", reason=reason)
        overlaps.refresh(session, board.named(report.problems))
        if above := board.current(session).above([id]):
            restack.follow(session, above)  # it cannot stay there, and says so
        if session.branches.tip(name) is None:
            return Decided(made)
        why = "is checked out" if session.branches.checkouts(name) else "has other commits"
        return Decided(made, note=f"{name} stays: it {why}")


def refresh(session: Session, *, decides: bool = True) -> None:
    """Know the branches, and what others decided, as they are now."""
    if decides:
        session.check_that_it_decides()
    session.branches.refresh()
    catch_up(session)


def proposal(session: Session, id: str) -> CommittedReport:
    """Return a proposal to be decided on; `UsageError` where there is none."""
    report = waits(session, id)
    if session.repo.ref_target(records.WAITING + id) != report.commit:  # a crash came in between
        restack.follow(session, [id])
        updated = session.queue.load(id)
        return updated if updated and has_commit(updated) else report
    return report


def waits(session: Session, id: str) -> CommittedReport:
    """Return the proposal's report; `UsageError` where it does not wait."""
    report = session.queue.load(id)
    if report is None:
        raise history.unknown(session, id)
    sighting = history.observe(session, report)
    if sighting.state != "proposed" or not has_commit(report):
        raise decided_already(id, sighting.state)
    return report


def another_try(session: Session, id: str, without: frozenset[str]) -> tuple[bytes, str, Choice]:
    """Return the response of a batch, its name, and the choice for it.

    The choice leaves out the edits `without` and what needs them.  Raises `UsageError` for a batch
    that landed or goes on by itself, and where the queue has lost the response.
    """
    report, _ = from_git.find(session, id)
    if report.state in LANDED:
        session.branches.refresh()
    now = history.examine(session, report)
    state = now.state
    if state in LANDED:
        cure = now.note or f"to take it back first: patchq revert {id}"
        raise UsageError(f"change {id} has landed: it is {state}", cure)
    if state == "duplicate" or (state == "held" and not worker.waits_for_mending(report)):
        message = f"change {id} is {state}: there is nothing to try again"
        raise UsageError(message, f"see `patchq show {id}`")
    body = session.queue.body(id)
    if body is None:
        raise UsageError(
            f"the response of {id} was never read, or is gone from the queue", "send it again"
        )
    if report.state in LANDED and not session.config.has_cluster:
        reports.rewrite(session, report, "reverted", now.note)
    choice = Choice(target=report.target, retries=id)
    if without:
        choice = select(choice, report.edits, None, without)
    return body, response_name(report.source.name or ""), choice
