"""Warnings in the reports of proposals that overlap (`conflict.pending`).

Both proposals have one, each with the other's edit and lines: whichever is accepted first lands,
and the other is made again on top of it or asks for a retry.  All of it is computed from the
commits that wait, so a report that a crash left behind is put right by the next `refresh`.  A
proposal is compared once, when it is new to the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from patchq.core.model.values import Collision, Problem
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.repository import Repository
from patchq.gate.land.overlaps import (
    Change,
    ChangedPlace,
    Index,
    decided,
    meeting,
    overlaps,
)
from patchq.gate.land.overlaps.waiting import Board, Named, board, named
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.lines import in_words
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, Report

MOST_BATCHES = 16  # a report that names more would be rewritten again and again as more come
_MOST_PLACES = 4


def warned(decisions: Sequence[Decision], session: Session) -> list[Decision]:
    """Return the decisions, each that proposes with a warning for each overlap."""
    group, gone, made = Index(), set[str](), list[Decision]()
    for decision in decisions:
        if decision.state == "proposed" and decision.candidate:
            group.add(decided(decision, decision.candidate, session.repo))
            gone.update(depends.replaced(session, decision.id, decision.header))
    waits = board(session) if group else Board()
    for decision in decisions:
        if own := group.get(decision.id) if decision.state == "proposed" else None:
            others = {id: waits[id] for id in waits.beside(own) - gone - group.keys()}
            others |= {id: group[id] for id in group.beside(own)}
            kept = [p for p in decision.problems if p.code != PENDING_CONFLICT]
            decision = replace(decision, problems=(*kept, *warnings_for(session.repo, own, others)))
        made.append(decision)
    return made


def refresh(session: Session, ids: Collection[str] = (), most: int | None = None) -> bool:
    """Have the reports of what waits name their overlaps; True if no report is left to do.

    `ids` are renewed in any case, and all where that may have changed, `most` of them at once.
    """
    waits = board(session)
    for id in sorted(waits.new):
        _compare(session.repo, waits, id)
    waits.new.clear()
    todo = sorted((waits.stale | set(ids)) & waits.keys())
    for start in range(0, len(todo), MOST_BATCHES):
        if most is not None and start >= most:
            return False
        _renew(todo[start : start + MOST_BATCHES], waits, session)
    waits.stale.clear()
    return True


def _compare(repo: Repository, waits: Board, id: str) -> None:
    """Find the reports that may have to change."""
    own, names, met = waits[id], waits.names[id], Named()
    for other in waits.beside(own):
        try:
            if next(meeting(repo, own, waits[other]), None) is None:
                continue
        except ObjectDamaged:  # the batch that needs it says so when it is looked at
            continue
        met[other] = waits[other].commit
        theirs = waits.names[other]
        if theirs.get(id, own.commit if _is_full(theirs) else None) != own.commit:
            waits.stale.add(other)
    if names != met and not (_is_full(names) and names.items() <= met.items()):
        waits.stale.add(id)


def _is_full(names: Named) -> bool:
    return len(names) >= MOST_BATCHES


def _renew(ids: Sequence[str], waits: Board, session: Session) -> None:
    """Have these reports name their overlaps; they share their lock and their flush."""
    changes = {}
    for id in ids:
        report = session.queue.load(id)
        if report is None or report.state != "proposed":
            continue
        others = {other: waits[other] for other in waits.beside(waits[id])}
        problems = warnings_for(session.repo, waits[id], others, list(named(report.problems)))
        waits.names[id] = named(problems)
        waits.stale.discard(id)
        if _with(problems, report) is not None:
            changes[id] = partial(_with, problems)
    from patchq.gate.land import reports  # who only foresees rewrites none

    reports.amend(session, changes)


def _with(problems: Sequence[Problem], report: Report) -> Report | None:
    """Return the report with these warnings; None if it has them."""
    if report.state != "proposed":
        return None
    others = [problem for problem in report.problems if problem.code != PENDING_CONFLICT]
    updated = document.with_problems(replace(report, problems=others), *problems)
    return updated if updated.problems != report.problems else None


def warnings_for(
    repo: Repository, own: Change, others: Mapping[str, Change], first: Sequence[str] = ()
) -> list[Problem]:
    """Return the warnings for one change beside others.

    Those that are named already come `first`, so that a report which names as many as it may does
    not change with each that comes.
    """
    order = [*(id for id in first if id in others), *sorted(others.keys() - set(first))]
    problems: list[Problem] = []
    batches = 0
    for id in order:
        try:
            found = list(islice(_warnings(repo, own, others[id]), _MOST_PLACES))
        except ObjectDamaged:  # the batch that needs it says so when it is looked at
            continue
        problems += found
        batches += bool(found)
        if batches == MOST_BATCHES:
            break
    return problems


def _warnings(repo: Repository, own: Change, other: Change) -> Iterator[Problem]:
    then = "is accepted" if other.commit else "has landed"
    for ours, theirs in overlaps(repo, own, other):
        yield Problem(
            PENDING_CONFLICT,
            _message(ours, theirs, other),
            f"nothing to send now: once {other.id} {then}, this change is rebuilt on top of "
            "it if it can be, and asks for a retry if not",
            severity="warning",
            edit=ours.edit,
            path=ours.path,
            line=ours.lines and ours.lines[0],
            conflicts_with=Collision(
                other.id, theirs.edit, other.commit or None, other.agent, theirs.path, theirs.lines
            ),
        )


def _message(ours: ChangedPlace, theirs: ChangedPlace, other: Change) -> str:
    state = "is held" if other.kind == "held" else "waits for review"
    waits = f"change {other.id}, which {state}, too"
    if ours.lines and theirs.lines:
        are = "is" if ours.lines[0] == ours.lines[1] else "are"
        return (
            f"{in_words(ours.lines)} of {ours.path} {are} changed here, and "
            f"{in_words(theirs.lines)} by {waits}"
        )
    return f"this change {ours.does} {ours.path}, and {waits}, {theirs.does} {theirs.path}"
