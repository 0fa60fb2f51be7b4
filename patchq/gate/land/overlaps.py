"""Overlaps: changes that cannot both land as they are.

Two changes for one target overlap where their changed lines share a line or border on each other,
and where one of them makes or removes a file that the other one touches.  Lines are compared in the
texts that the commits change.  Where these differ, since the target moved between the two, the
lines of one are carried to the other's text first.

A process keeps one board of what waits, and reads only what is new there.  At its end it leaves
the board in the store: the next process begins with it if nothing happened in between.

Reports of proposals that overlap have a warning each (`conflict.pending`), computed from the
commits that wait: `refresh` puts right what a crash left behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from patchq.core.model.values import Collision, EditOutcome, Problem
from patchq.core.text.quote import line_words
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.objects import Changes
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import depends
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines, image, inclusive
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.shelf import Shelf
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, ProblemEntry, Report, has_commit

# The ids of a file's text before and after; None where there is no file.
Blobs = tuple[str | None, str | None]
Place = tuple[str, Lines | None]  # a path, and changed lines of it; None for the file as a whole


class ChangedPlace(Struct, frozen=True):
    """One place of a change in the terms of its report.

    `lines` are 1-based and inclusive, of its base; None for the file as a whole.  An insertion has
    the line before it.
    """

    path: str
    does: str
    edit: str | None = None
    lines: tuple[int, int] | None = None


@dataclass
class Change:
    """The change of a batch, work tree or branch: its commit, edits and files."""

    id: str
    target: str
    agent: str | None
    commit: str
    base: str
    edits: Sequence[EditOutcome]
    changes: Mapping[str, Blobs]
    kind: Literal["waits", "worktree", "branch"] = "waits"
    on: str | None = None
    known_spans: dict[str, list[Lines]] = field(default_factory=dict)

    @cached_property
    def reach(self) -> set[str]:
        """The paths at which it may overlap others, with folders of new files."""
        made = (PurePosixPath(path) for path, (before, _) in self.changes.items() if before is None)
        return {*self.changes, *(str(top) for path in made for top in path.parents[:-1])}

    def spans(self, repo: Repository, path: str) -> list[Lines]:
        """Return the changed lines of a file that it edits, in the text before."""
        if path not in self.known_spans:
            before, after = (text(repo, blob) for blob in self.changes[path])
            self.known_spans[path] = [(a0, a1) for a0, a1, _, _ in line_hunks(before, after)]
        return self.known_spans[path]

    def place(self, repo: Repository, path: str, span: Lines | None = None) -> ChangedPlace:
        """Return these lines, or the file as a whole, as the report has them."""
        before, after = self.changes[path]
        does = "creates" if before is None else "deletes" if after is None else "changes"
        own = [edit for edit in self.edits if edit.path == path]
        lines = None if span is None else self._on_base(repo, path, span)
        near = [edit for edit in own if not (lines and edit.lines) or _borders(edit.lines, lines)]
        return ChangedPlace(path, does, near[0].id if near else None, lines and inclusive(lines))

    def _on_base(self, repo: Repository, path: str, span: Lines) -> Lines:
        """Return the lines in its base: the file may have changed before the commit was made."""
        entry = repo.tree(self.base).entry(path)
        before = self.changes[path][0]
        if entry is None or entry.kind != "file" or entry.oid == before:
            return span
        return image(span, line_hunks(text(repo, before), text(repo, entry.oid)))


def _borders(quote: tuple[int, int], lines: Lines) -> bool:
    return quote[0] - 1 <= lines[1] and lines[0] <= quote[1]


def blobs(changes: Changes) -> dict[str, Blobs]:
    return {
        path: (before and before[1], after and after[1])
        for path, (before, after) in changes.items()
    }


def changed_files(repo: Repository, commit: str) -> dict[str, Blobs]:
    return blobs(repo.changes(repo.parents(commit)[0], commit))


def text(repo: Repository, blob: str | None) -> bytes:
    return repo.raw(blob) if blob else b""


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


def reported(report: Report, commit: str, repo: Repository) -> Change | None:
    """Return the proposal of that commit; None if it waits no more, or cannot be read."""
    if report.state != "proposed" or not has_commit(report):
        return None
    on = report.stands_on.batch if report.stands_on else None
    try:
        files = changed_files(repo, commit)
    except ObjectDamaged:
        return None
    base, edits = report.base.commit, report.edits
    return Change(report.id, report.target, report.agent, commit, base, edits, files, on=on)


Named = dict[str, str | None]  # the commits of batches by their ids
Refs = tuple[str | None, ...]


class Board(dict[str, Change]):
    """Changes by their ids; of the proposals that wait, also those that their reports name."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._on: dict[str, set[str]] = defaultdict(set)
        self.names: dict[str, Named] = {}
        self.new: set[str] = set()  # those that were not compared yet
        self.stale: set[str] = set()  # those whose report may have to name others than it does
        self.settled: dict[str, Refs] = {}  # the refs on which each depended when it was looked at

    @property
    def is_due(self) -> bool:
        """True if some reports may not name the right batches."""
        return bool(self.new or self.stale)

    def add(self, change: Change) -> None:
        self[change.id] = change
        for path in change.reach:
            self._at[change.target, path].add(change.id)
        if change.on is not None:
            self._on[change.on].add(change.id)

    def remove(self, id: str) -> None:
        change = self.pop(id)
        for path in change.reach:
            self._at[change.target, path].discard(id)
            if not self._at[change.target, path]:
                del self._at[change.target, path]
        if change.on is not None:
            self._on[change.on].discard(id)

    def beside(self, own: Change) -> set[str]:
        """Return the changes that may overlap this one.

        Not those of its own stack, which land before or after it, and never instead of it.
        """
        near = {id for path in own.reach for id in self._at.get((own.target, path), ())} - {own.id}
        return near - self._below(own) - self.above({own.id}) if near else near

    def _below(self, own: Change) -> set[str]:
        found, on = set[str](), own.on
        while on is not None and on not in found:
            found.add(on)
            on = self[on].on if on in self else None
        return found

    def above(self, ids: Iterable[str]) -> set[str]:
        found, front = set[str](), list(ids)
        while front:
            new = self._on.get(front.pop(), set()) - found
            found |= new
            front += new
        return found

    def renew(self, context: RepoContext, marks: Mapping[str, str]) -> None:
        """Bring it up to date; `marks` are the commits by their ids."""
        for id in [id for id, known in self.items() if marks.get(id) != known.commit]:
            self.drop(id)
        # One whose report is not there yet, or that was decided meanwhile, is looked at again.
        for id in marks.keys() - self.keys():
            report = context.queue.load(id)
            if report and (change := reported(report, marks[id], context.repo)):
                self.add(change)
                self.names[id] = named(report.problems)
                self.new.add(id)

    def drop(self, id: str) -> None:
        """Remove a batch that no longer waits, or waits with another commit."""
        if id in self:
            self.stale |= {other for other in self.beside(self[id]) if id in self.names[other]}
            self.remove(id)
            del self.names[id]
            self.new.discard(id)
            self.stale.discard(id)
            self.settled.pop(id, None)


class _KeptBoard(Struct):
    changes: list[Change]
    names: dict[str, Named]
    settled: dict[str, Refs]


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
    waits = (None if looks else _boards.get(session.repo)) or board(session)
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
    waits = board(session, None if came is None else _marks_beside(session, came))
    for id in sorted(waits.new):
        _compare(session.repo, waits, id)
    waits.new.clear()
    todo = sorted((waits.stale | set(ids)) & waits.keys())[:most]
    _renew(todo, waits, session)
    waits.stale.intersection_update(waits.keys() - set(todo))
    return not waits.stale


def _marks_beside(session: Session, came: Mapping[str, str]) -> dict[str, str]:
    """Return the commits of what waits, looked up where new ones may overlap."""
    waits, gone = known(session), set[str]()
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


_boards: WeakKeyDictionary[Repository, Board] = WeakKeyDictionary()


def board(context: RepoContext, marks: Mapping[str, str] | None = None) -> Board:
    """Return what waits now; `marks` are the commits by their ids, if they are known."""
    found = known(context)
    found.renew(context, waiting(context) if marks is None else marks)
    return found


def known(context: RepoContext) -> Board:
    """Return the board that this process, or the one before it, had last."""
    found = _boards.get(context.repo)
    if found is None:
        found = _boards[context.repo] = Board()
        with suppress(DecodeError):  # another version's
            kept = decode(_shelf(context).get(_now(context)) or b"", type=_KeptBoard)
            for change in kept.changes:
                found.add(change)
            found.names, found.settled = kept.names, kept.settled
    return found


def leave(context: RepoContext) -> None:
    """Leave the board for the next process, unless it is due."""
    board, shelf = _boards.get(context.repo), _shelf(context)
    if board and not board.is_due:
        kept = encode(_KeptBoard(list(board.values()), board.names, board.settled))
        if shelf.get(now := _now(context)) != kept:
            shelf.put(now, kept)


def _shelf(context: RepoContext) -> Shelf:
    return Shelf(context.queue_root, "board", most=1)


def _now(context: RepoContext) -> str:
    return str(context.queue.store.value("select max(number) from events"))


def waiting(context: RepoContext) -> dict[str, str]:
    """Return the commits of the proposals by their ids.

    Where several machines propose, only those on the branches that this process serves.
    """
    marks = {
        name.removeprefix(records.WAITING): oid
        for name, oid in context.repo.refs(records.WAITING).items()
    }
    shared = context.queue.proposals() if marks else None
    return marks if shared is None else {id: oid for id, oid in marks.items() if id in shared}


def named(problems: Iterable[Problem | ProblemEntry]) -> Named:
    """Return the batches that a report with these problems names, in its order."""
    others = [p.conflicts_with for p in problems if p.code == PENDING_CONFLICT]
    return {other.batch: other.commit for other in others if other and other.batch}
