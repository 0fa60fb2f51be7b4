"""Landing: verdicts come true, many at once, each by one compare-and-swap of one ref.

The order is what makes a crash harmless, and two flushes pay for a whole group:

    write every intended report into the store, every ref's value beside its ref | flush |
    move the refs | flush | `publish` every report

The intended report is there before any ref moves, so whoever recovers the claim knows which commit
to look for; no report appears before what it speaks of is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from patchq.gate.errors import Busy, CannotFollow, Declined, ObjectDamaged, Unreachable
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove, Moved, bundles
from patchq.gate.git.lock_files import WAIT_SECONDS
from patchq.gate.git.refs import Staged
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import Parcel
from patchq.gate.report import page
from patchq.gate.report.schema import Report

_LOG = logging.getLogger("patchq")


class Publication(Struct, frozen=True):
    """A decision with the report on it, as JSON and as a page."""

    decision: Decision
    report: Report
    page: str


class Landed(Struct, frozen=True):
    """The outcome of a group: verdicts that are true now and wait for `publish`, and batches to
    decide again since their branch, their work tree or a batch before them changed meanwhile."""

    done: list[Publication] = field(default_factory=list)
    again: list[Decision] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    """Paths that were in the way when a work tree was to follow."""


def publication(decision: Decision) -> Publication:
    report = decision.report()
    return Publication(decision, report, page.to_markdown(report))


def land(decisions: Sequence[Decision], session: Session) -> Landed:
    """Make verdicts true, in order; return those that are, and those to decide again."""
    if not decisions:
        return Landed()
    written = list(map(publication, decisions))
    with session.queue.together():
        left = [one.decision for one in written if _intended(one, session)]
    if len(left) < len(written):
        return Landed(again=left)
    with ExitStack() as staged:
        rows = _rows(decisions, session, staged)
        flush(session)
        moved = session.branches.land([row.move(session) for row in rows]) if rows else []
        made = [row for row, one in zip(rows, moved, strict=True) if one.made]
        lost = {
            decision.id: (row, one)
            for row, one in zip(rows, moved, strict=True)
            if not one.made
            for decision in row.decisions
        }
        landed = _sorted(written, lost, session)
        if rows:
            _mark(made, landed.done, session)
            flush(session)
    landed.unsure.update(path for one in moved for path in one.unsure)
    return landed


def _intended(written: Publication, session: Session) -> bool:
    """Return True if the verdict still holds.

    A person may have decided on a held batch meanwhile, and then it does not land.
    """
    decision = written.decision
    if decision.state == "held":
        return True
    try:
        session.queue.intend(
            decision.claim, written.report, written.page, _parcel(decision, session)
        )
    except Busy as busy:
        _LOG.warning("%s", busy.message, extra={"batch": decision.id})
        return False
    return True


def _parcel(decision: Decision, session: Session) -> Parcel | None:
    """Return the commit as a bundle for other clones, which lack it before the push arrives."""
    if decision.candidate is None or session.branches.remote is None:
        return None
    return partial(bundles.pack, session.repo, decision.candidate.commit)


def _sorted(
    written: Sequence[Publication], not_made: Mapping[str, tuple[_Row, Moved]], session: Session
) -> Landed:
    """One that moves nothing, and saw the branch as a lost one would have left it, is to be decided
    again, too; and where one of many cannot land, each of them, to find out which.  What was moved
    is true, whatever became of those before it."""
    landed, lost = Landed(), set()
    for one in written:
        decision = one.decision
        row, moved = not_made.get(decision.id, (None, None))
        if row is None or moved is None:
            if decision.candidate is None and decision.tip and decision.target in lost:
                landed.again.append(decision)
            else:
                landed.done.append(one)
            continue
        lost.add(decision.target)
        fault = moved.fault
        if instead := moved.landed.get(decision.commit or ""):
            landed.done.append(publication(_landed_as(decision, instead, session)))
        elif isinstance(fault, ObjectDamaged | CannotFollow) and len(row.decisions) == 1:
            landed.done.append(publication(decision.damaged(fault)))
        elif isinstance(fault, Declined):
            landed.done.append(publication(decision.declined(fault)))
        elif isinstance(fault, Busy) and not session.stop.is_set:
            # Another process holds the branch's lock: the batch waits, and is decided again.
            landed.done.append(publication(_waiting(decision, fault)))
        else:
            landed.again.append(decision)
    return landed


def _waiting(decision: Decision, fault: Busy) -> Decision:
    more = f" ({fault.hint})" if fault.hint else ""
    until = "that is mended" if isinstance(fault, Unreachable) else "that lock is gone"
    hint = f"nothing to send: the change lands by itself once {until}{more}"
    return decision.held(fault.message, hint)


def _landed_as(decision: Decision, commit: str, session: Session) -> Decision:
    """The decision with the commit that is on the branch in place of its own: another process that
    had the batch in hand made that."""
    assert decision.candidate
    tree = session.repo.tree(commit).root
    return replace(decision, candidate=replace(decision.candidate, commit=commit, tree=tree))


def publish(written: Publication, session: Session) -> None:
    """Let a verdict that `land` made true be seen."""
    finish = session.queue.hold if written.decision.state == "held" else session.queue.publish
    finish(written.decision.claim, written.report, written.page)


def hold_on(decision: Decision, session: Session) -> None:
    """Let the report of a held batch say what it waits for now."""
    written = publication(decision)
    known = session.queue.load(decision.id)
    if known is None or known.problems != written.report.problems:
        session.queue.hold(decision.claim, written.report, written.page)


def _rows(decisions: Sequence[Decision], session: Session, staged: ExitStack) -> list[_Row]:
    """The moves that make the verdicts true; batches on one branch that follow each other move it
    together, whatever is proposed in between.  Their values last until `staged` closes."""
    rows: list[list[Decision]] = []
    newest: dict[str, list[Decision]] = {}
    for decision in decisions:
        if (candidate := decision.candidate) is None:
            continue
        row = newest.get(candidate.target)
        if decision.state == "proposed":
            rows.append([decision])
        elif row and row[-1].commit == candidate.parent:
            row.append(decision)
        else:
            newest[candidate.target] = [decision]
            rows.append(newest[candidate.target])
    made: list[_Row] = []
    for row in rows:
        value = refs.stage(session.repo, row[-1].commit or "")
        staged.callback(value.drop)
        made.append(_Row(row, value))
    return made


class _Row(Struct, frozen=True):
    """The move of one branch, for one verdict or for several in a row.  Its value is written before
    the flush, so that the flush makes it durable."""

    decisions: Sequence[Decision]
    value: Staged

    def move(self, session: Session) -> BranchMove:
        first, last, who = self.decisions[0], self.decisions[-1], session.identity()
        candidates = [one.candidate for one in self.decisions if one.candidate]
        target, parent = candidates[0].target, candidates[0].parent
        if first.state == "proposed":
            branch = records.branch(first.id)
            return BranchMove(branch, None, self.value, first.log, who, behind=target)
        return BranchMove(
            target,
            parent,
            self.value,
            last.log,
            who,
            through=[(one.commit or "", one.log) for one in self.decisions[:-1]],
            touched={path for candidate in candidates for path in candidate.paths},
            # A batch that waited for a lock already looks again soon, so it need not wait.
            wait=0.0 if first.claim.held else WAIT_SECONDS,
            cut=lambda: session.stop.is_set,
            backup=session.config.worktree.backup,
        )


def _mark(made: Sequence[_Row], done: Sequence[Publication], session: Session) -> None:
    """Remember of each proposal that it waits, by a ref of its own."""
    values: dict[str, Staged] = {row.decisions[0].id: row.value for row in made}
    for decision in (one.decision for one in done):
        if decision.state == "proposed" and decision.candidate:
            # One that another process made of the same response has no value here.
            value = values.get(decision.id, decision.candidate.commit)
            mark, who = records.WAITING + decision.id, session.identity()
            refs.move(session.repo, mark, None, value, decision.log, who)


def move_target(
    session: Session,
    target: str,
    old: str,
    new: str,
    log: str,
    along: Sequence[BranchMove],
    through: Sequence[tuple[str, str]] = (),
) -> bool:
    """Move a branch from `old` to `new`; on a remote, `along` is made with it, or none is.
    `through`: see `BranchMove`.  False when the branch, or a work tree on it, is not as it was.
    Raises what else is wrong."""
    backup = session.config.worktree.backup
    move = BranchMove(target, old, new, log, session.identity(), through=through, backup=backup)
    moved, *_ = session.branches.land([move, *along] if session.branches.remote else [move])
    if moved.fault is not None:
        raise moved.fault
    return moved.made or bool(moved.landed)
