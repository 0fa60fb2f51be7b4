"""Overlaps: changes that cannot both land as they are.

Two changes for one target overlap where their changed lines share a line or border on each other,
and where one of them makes or removes a file that the other one touches.  Lines are compared in the
texts that the commits change.  Where these differ, since the target moved between the two, the
lines of one are carried to the other's text first.

Reports of proposals that overlap have a warning each (`conflict.pending`), computed from the
commits that wait: `refresh` puts right what a crash left behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from patchq.core.model.values import Collision, Problem
from patchq.core.text.quote import line_words
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.repository import Repository
from patchq.gate.land import board
from patchq.gate.land.board import (
    Board,
    Change,
    ChangedPlace,
    Named,
    blobs,
    changed_files,
    named,
    reported,
    text,
)
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.lines import Lines, image
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, Report

Place = tuple[str, Lines | None]  # a path, and changed lines of it; None for the file as a whole


def _change_of(decision: Decision, repo: Repository) -> Change | None:
    """Return the change of a proposal, or of a dry run that would land; its texts are kept."""
    if decision.state == "proposed" and decision.commit:
        files = changed_files(repo, decision.commit)
    elif decision.choice.dry_run and decision.changes and decision.state != "rejected":
        before, after = (
            repo.tree(decision.tip).root,
            repo.write_tree(decision.tip, decision.changes),
        )
        files = blobs(repo.differences(before, after))
    else:
        return None
    agent, base, on = decision.header.agent, decision.base_commit, decision.on
    id, target, commit = decision.id, decision.target, decision.commit
    return Change(id, target, agent, commit, base, decision.edits, files, on=on)


def overlaps(
    repo: Repository, one: Change, other: Change
) -> Iterator[tuple[ChangedPlace, ChangedPlace]]:
    """Yield the places where both change something that touches."""
    for ours, theirs in meeting(repo, one, other):
        yield one.place(repo, *ours), other.place(repo, *theirs)


def meeting(repo: Repository, one: Change, other: Change) -> Iterator[tuple[Place, Place]]:
    """Yield the same places as lines of the texts that the commits change."""
    for path in sorted(one.changes.keys() & other.changes.keys()):
        if None in (*one.changes[path], *other.changes[path]):
            yield (path, None), (path, None)
            continue
        theirs = _carried(repo, other, path, one)
        for ours in one.spans(repo, path):
            for span, there in theirs:
                if ours[0] <= there[1] and there[0] <= ours[1]:
                    yield (path, ours), (path, span)
    yield from _file_and_folder(one, other)
    yield from ((ours, theirs) for theirs, ours in _file_and_folder(other, one))


def _file_and_folder(one: Change, other: Change) -> Iterator[tuple[Place, Place]]:
    """Yield each file of the one where the other makes a folder."""
    for path in sorted(one.changes.keys() & (other.reach - other.changes.keys())):
        if one.changes[path][1] is not None:
            below = next(new for new in sorted(other.changes) if new.startswith(f"{path}/"))
            yield (path, None), (below, None)


def _carried(repo: Repository, batch: Change, path: str, to: Change) -> list[tuple[Lines, Lines]]:
    """Return a file's changed lines, each with its place for `to`.

    The place is in the text that `to` changes.
    """
    spans, before, there = batch.spans(repo, path), batch.changes[path][0], to.changes[path][0]
    if before == there:
        return [(span, span) for span in spans]
    since = line_hunks(text(repo, before), text(repo, there))
    return [(span, image(span, since)) for span in spans]


MOST_BATCHES = 16  # a report that names more would be rewritten again and again as more come
_MOST_PLACES = 4


def warned(group: Sequence[Decision], session: Session, *, looks: bool = True) -> list[Decision]:
    """Return the decisions, each that proposes with a warning for each overlap.

    Unless it `looks`, what began to wait since this process looked last is left to `refresh`.
    """
    changes, gone, made = Board(), set[str](), list[Decision]()
    for decision in group:
        if own := _change_of(decision, session.repo):
            changes.add(own)
            gone.update(depends.replaced(session, decision.id, decision.header))
    if not changes:
        return list(group)
    waits = (None if looks else board.known(session)) or board.current(session)
    for decision in group:
        if own := changes.get(decision.id):
            near = waits.beside(own) - gone - changes.keys()
            others = {id: waits[id] for id in near if _is_there(session, waits[id])}
            others |= {id: changes[id] for id in changes.beside(own)}
            kept = [p for p in decision.problems if p.code != PENDING_CONFLICT]
            decision = replace(decision, problems=(*kept, *warnings_for(session.repo, own, others)))
        made.append(decision)
    return made


def refresh(
    session: Session,
    ids: Collection[str] = (),
    most: int | None = None,
    came: Mapping[str, str] | None = None,
) -> bool:
    """Have the reports of what waits name their overlaps; True if no report is left to do.

    `ids` are renewed in any case, and all where that may have changed, `most` of them at once.
    With `came`, the commits of new proposals by their ids, only these and what they may overlap
    are looked at.
    """
    waits = board.current(session, None if came is None else _marks_beside(session, came))
    for id in sorted(waits.new):
        _compare(session.repo, waits, id)
    waits.new.clear()
    todo = sorted((waits.stale | set(ids)) & waits.keys())[:most]
    _renew(todo, waits, session)
    waits.stale.intersection_update(waits.keys() - set(todo))
    return not waits.stale


def _marks_beside(session: Session, came: Mapping[str, str]) -> dict[str, str]:
    """Return the commits of what waits, looked up where new ones may overlap."""
    waits, gone = board.known(session), set[str]()
    for id, commit in came.items():
        report = session.queue.load(id)
        if report and (change := reported(report, commit, session.repo)):
            gone |= {id for id in waits.beside(change) if not _is_there(session, waits[id])}
    return {id: one.commit for id, one in waits.items() if id not in gone} | dict(came)


def _is_there(session: Session, change: Change) -> bool:
    return session.repo.ref_target(records.WAITING + change.id) == change.commit


def _compare(repo: Repository, waits: Board, id: str) -> None:
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
    changes = {}
    for id in ids:
        report = session.queue.load(id)
        if report is None:
            continue
        others = {other: waits[other] for other in waits.beside(waits[id])}
        problems = warnings_for(session.repo, waits[id], others, list(named(report.problems)))
        waits.names[id] = named(problems)
        changes[id] = partial(_with, problems)
    from patchq.gate.land import reports  # who only foresees rewrites none

    reports.amend(session, changes)


def _with(problems: Sequence[Problem], report: Report) -> Report | None:
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
    for ours, theirs in overlaps(repo, own, other):
        yield Problem(
            PENDING_CONFLICT,
            f"this change {_described(ours)}, and change {other.id}, which waits for review, too, "
            f"{_described(theirs)}",
            f"nothing to send now: once {other.id} is accepted, this change is rebuilt on top of "
            "it if it can be, and asks for a retry if not",
            severity="warning",
            edit=ours.edit,
            path=ours.path,
            line=ours.lines and ours.lines[0],
            conflicts_with=Collision(
                other.id, theirs.edit, other.commit or None, other.agent, theirs.path, theirs.lines
            ),
        )


def _described(place: ChangedPlace) -> str:
    lines = f"{line_words(place.lines)} of " if place.lines else ""
    return f"{place.does} {lines}{place.path}"
