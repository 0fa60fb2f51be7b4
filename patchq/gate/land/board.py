"""The changes that wait, as this process knows them.

A process keeps one board of what waits, and reads only what is new there.  At its end it leaves
the board in the store: the next process begins with it if nothing happened in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from patchq.core.model.values import EditOutcome, Problem
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.objects import Changes
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines, image, inclusive
from patchq.gate.queue.shelf import Shelf
from patchq.gate.report.schema import PENDING_CONFLICT, ProblemEntry, Report, has_commit

# The ids of a file's text before and after; None where there is no file.
Blobs = tuple[str | None, str | None]


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


_boards: WeakKeyDictionary[Repository, Board] = WeakKeyDictionary()


def current(context: RepoContext, marks: Mapping[str, str] | None = None) -> Board:
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
