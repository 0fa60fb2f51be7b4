"""`conflict.pending`: proposals for one target that cannot both land as they are.

Two batches that wait collide where their changed lines share a line or border on each other, and
where one of them makes or removes a file that the other one touches.  Both reports say so, each
with the other's edit and lines.  It is a warning: whichever is accepted first lands, and the other
is made again on top of it or asks for a retry.

Lines are compared in the texts that the commits change.  Where those differ, since the target moved
between the two, the lines of one are carried to the other's text first.

Everything is computed from the commits that wait, so a report that a crash left behind is put right
by the next `refresh`.  A proposal is compared once, when it is new to the process, with those that
touch a path of its own; what that changes in their reports is all that is read and written again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.core.model.values import Collision, Problem
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.repository import Repository
from patchq.gate.land import board
from patchq.gate.land.board import Board, Named, Proposal, ProposedChange, text
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.lines import Lines, image, in_words
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, Report

if TYPE_CHECKING:  # who only looks at what collides lands nothing
    from patchq.gate.land.landing import Publication

MOST_BATCHES = 16
"""Other batches that a report names; what waits beyond them would only be rewritten again and again
as more come."""
_MOST_PLACES = 4
"""Pairs of edits that are named of each."""

_SECONDS = 1.0
"""How late this process may see what others let wait: `refresh` puts it right."""

_Place = tuple[str, Lines | None]
"""A path, and the changed lines of it; None for the file as a whole."""


def collisions(
    repo: Repository, one: Proposal, other: Proposal
) -> Iterator[tuple[ProposedChange, ProposedChange]]:
    """The places where both change something that touches: lines that they share or that border
    on each other, and files that one of them makes or removes."""
    for ours, theirs in _meeting(repo, one, other):
        yield one.place(repo, *ours), other.place(repo, *theirs)


def _meeting(repo: Repository, one: Proposal, other: Proposal) -> Iterator[tuple[_Place, _Place]]:
    for path in sorted(one.changes.keys() & other.changes.keys()):
        if None in (*one.changes[path], *other.changes[path]):
            yield (path, None), (path, None)
            continue
        theirs = _carried(repo, other, path, one)
        for ours in one.spans(repo, path):
            for span, there in theirs:
                if ours[0] <= there[1] and there[0] <= ours[1]:
                    yield (path, ours), (path, span)
    yield from _file_and_directory(one, other)
    yield from ((ours, theirs) for theirs, ours in _file_and_directory(other, one))


def _file_and_directory(one: Proposal, other: Proposal) -> Iterator[tuple[_Place, _Place]]:
    """A file of the one where the other has a directory."""
    for path in sorted(one.changes.keys() & other.above if other.above else ()):
        if one.changes[path][1] is not None:
            below = next(new for new in sorted(other.changes) if new.startswith(f"{path}/"))
            yield (path, None), (below, None)


def _carried(
    repo: Repository, batch: Proposal, path: str, to: Proposal
) -> list[tuple[Lines, Lines]]:
    """The batch's changed lines of a file, and where they are in the text that `to` changes."""
    spans, before, there = batch.spans(repo, path), batch.changes[path][0], to.changes[path][0]
    if before == there:
        return [(span, span) for span in spans]
    since = line_hunks(text(repo, before), text(repo, there))
    return [(span, image(span, since)) for span in spans]


# ---------------------------------------------------------------- what reports say of it


def warned(decisions: Sequence[Decision], session: Session) -> list[Decision]:
    """The decisions, each that proposes with what it collides with: what waits, and the others."""
    if not any(d.state == "proposed" and d.candidate for d in decisions):
        return list(decisions)
    began = monotonic()
    waits = board.board(session, within=_SECONDS)
    made = _warned(decisions, session, waits)
    if waits.at < began and any(board.named_by(d.problems).keys() & set(waits) for d in made):
        # What is named may have been decided meanwhile.
        made = _warned(decisions, session, board.board(session))
    return made


def _warned(decisions: Sequence[Decision], session: Session, waits: Board) -> list[Decision]:
    proposed = [d for d in decisions if d.state == "proposed" and d.candidate]
    gone = {id for d in proposed for id in depends.replaced(session, d.id, d.header)}
    group = {d.id: board.decided(d, d.candidate, session.repo) for d in proposed if d.candidate}
    made = []
    for decision in decisions:
        if own := group.get(decision.id) if decision.state == "proposed" else None:
            others = {id: waits[id] for id in waits.beside(own) - gone - group.keys()}
            others |= {id: one for id, one in group.items() if _near(own, one)}
            kept = [p for p in decision.problems if p.code != PENDING_CONFLICT]
            decision = replace(decision, problems=(*kept, *warnings_for(session.repo, own, others)))
        made.append(decision)
    return made


def _near(own: Proposal, other: Proposal) -> bool:
    same = own.id != other.id and own.target == other.target
    same = same and own.on != other.id and other.on != own.id
    return same and not own.reach.isdisjoint(other.reach)


def spread(written: Sequence[Publication], session: Session) -> None:
    """Tell the batches that waited before of those which have landed, and of those superseded."""
    headers = [one.decision.header for one in written]
    replacing = any(header.retries or (header.id and header.agent) for header in headers)
    proposed = [one for one in written if one.report.state == "proposed"]
    if not proposed and not replacing:
        return
    waits = board.known(session.repo)
    if waits is None or session.serves:  # it may serve other branches now
        waits = board.board(session)
    for one in proposed:
        if one.decision.commit:
            waits.take(one.report, one.decision.commit, session.repo)
    _refresh(waits, session)


def refresh(session: Session, ids: Collection[str] = (), most: int | None = None) -> bool:
    """Have the reports of what waits name what each collides with now: `ids` in any case, and all
    where that may have changed, `most` of them at once; True if that was the last of them."""
    return _refresh(board.board(session), session, ids, most)


def _refresh(
    waits: Board, session: Session, ids: Collection[str] = (), most: int | None = None
) -> bool:
    waits.new = {id for id in sorted(waits.new) if not _compare(session.repo, waits, id)}
    todo = sorted((waits.stale | set(ids)) & set(waits))
    for start in range(0, len(todo), MOST_BATCHES):
        if most is not None and start >= most:
            return False
        _renew(todo[start : start + MOST_BATCHES], waits, session)
    waits.stale.clear()
    return True


def _compare(repo: Repository, waits: Board, id: str) -> bool:
    """Find the reports that may have to change, now that this batch waits; False if something could
    not be read for that."""
    own, names, met, whole = waits[id], waits.names(id), Named(), True
    for other in waits.beside(own):
        try:
            if next(_meeting(repo, own, waits[other]), None) is None:
                continue
        except ObjectDamaged:  # the batch that needs it says so when it is looked at
            whole = False
            continue
        met[other] = waits[other].commit
        told = waits.names(other)
        if told.get(id, own.commit if _is_full(told) else None) != own.commit:
            waits.stale.add(other)
    if names != met and not (_is_full(names) and names.items() <= met.items()):
        waits.stale.add(id)
    return whole


def _is_full(names: Named) -> bool:
    return len(names) >= MOST_BATCHES


def _renew(ids: Sequence[str], waits: Board, session: Session) -> None:
    """Have these reports name what they collide with; they share their lock and their flush."""
    changes = {}
    for id in ids:
        report = session.queue.load(id)
        if report is None or report.state != "proposed":
            continue
        own, first = waits[id], board.named(report)
        others = {other: waits[other] for other in waits.beside(own)}
        problems = warnings_for(session.repo, own, others, list(first))
        waits.told(id, board.named_by(problems))
        if _with(problems, report) is not None:
            changes[id] = partial(_with, problems)
    from patchq.gate.land import reports  # who only foresees rewrites none

    reports.amend_each(session, changes)


def _with(problems: Sequence[Problem], report: Report) -> Report | None:
    """The report with these collisions; None if it has them."""
    if report.state != "proposed":
        return None
    others = [problem for problem in report.problems if problem.code != PENDING_CONFLICT]
    updated = document.with_problems(replace(report, problems=others), *problems)
    return updated if updated.problems != report.problems else None


def warnings_for(
    repo: Repository, own: Proposal, others: Mapping[str, Proposal], first: Sequence[str] = ()
) -> list[Problem]:
    """The warnings for one proposal beside others; those that are named already come `first`, so
    that a report which names as many as it may does not change with each that comes."""
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


def _warnings(repo: Repository, own: Proposal, other: Proposal) -> Iterator[Problem]:
    then = "is accepted" if other.commit else "has landed"
    for ours, theirs in collisions(repo, own, other):
        yield Problem(
            PENDING_CONFLICT,
            _message(ours, theirs, other),
            f"nothing to send now: once {other.id} {then}, this batch is made again on top of "
            "it if it can be, and asks for a retry if not",
            severity="warning",
            edit=ours.edit,
            path=ours.path,
            line=ours.lines and ours.lines[0],
            conflicts_with=Collision(
                other.id, theirs.edit, other.commit or None, other.agent, theirs.path, theirs.lines
            ),
        )


def _message(ours: ProposedChange, theirs: ProposedChange, other: Proposal) -> str:
    waits = f"batch {other.id}, which {other.stands}, too"
    if ours.lines and theirs.lines:
        are = "is" if ours.lines[0] == ours.lines[1] else "are"
        return (
            f"{in_words(ours.lines)} of {ours.path} {are} changed here, and "
            f"{in_words(theirs.lines)} by {waits}"
        )
    return f"this batch {ours.does} {ours.path}, and {waits}, {theirs.does} {theirs.path}"
