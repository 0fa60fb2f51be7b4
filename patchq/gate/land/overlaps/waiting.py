"""Proposals that wait for review, by their ids and by the paths that they touch.

A process keeps one board for each repository.  It is brought up to date from git's marks, and reads
only what is new there: a response costs what touches it, however much waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from patchq.core.model.values import Problem
from patchq.gate.git import records
from patchq.gate.git.repository import Repository
from patchq.gate.land.overlaps import (
    Index,
    reported,
)
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import (
    PENDING_CONFLICT,
    ProblemEntry,
    Report,
)

Named = dict[str, str | None]  # the commits of batches by their ids


class Board(Index):
    """The proposals that wait, each with those that its report names."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, Named] = {}
        self.new: set[str] = set()  # those that were not compared yet
        self.stale: set[str] = set()  # those whose report may have to name others than it does

    def take(self, report: Report, commit: str, repo: Repository) -> None:
        """Take in a batch that waits at this commit, whose report has just been written."""
        self.drop(report.id)
        if change := reported(report, commit, repo):
            self.add(change)
            self.names[report.id] = named(report.problems)
            self.new.add(report.id)

    def renew(self, context: RepoContext, marks: Mapping[str, str]) -> None:
        """Bring it up to date; `marks` are the commits by their ids."""
        for id in [id for id, known in self.items() if marks.get(id) != known.commit]:
            self.drop(id)
        # One whose report is not there yet, or that was decided meanwhile, is looked at again.
        for id in marks.keys() - self.keys():
            if report := context.queue.load(id):
                self.take(report, marks[id], context.repo)

    def drop(self, id: str) -> None:
        """Take out a batch that does not wait any more, at least not as it did."""
        if id in self:
            self.stale |= {other for other in self.beside(self[id]) if id in self.names[other]}
            self.remove(id)
            del self.names[id]
            self.new.discard(id)
            self.stale.discard(id)


_boards: WeakKeyDictionary[Repository, Board] = WeakKeyDictionary()


def take(report: Report, commit: str, repo: Repository) -> None:
    """Take a report that has just been written in on the board of this process."""
    if found := _boards.get(repo):
        found.take(report, commit, repo)


def board(context: RepoContext, marks: Mapping[str, str] | None = None) -> Board:
    """Return what waits now; `marks` are the commits by their ids, if they are known."""
    found = _boards.setdefault(context.repo, Board())
    found.renew(context, waiting(context) if marks is None else marks)
    return found


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
