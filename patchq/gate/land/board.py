"""What waits for review: the proposals by their ids, and by the paths that they touch.

A process keeps one board for each repository.  It is brought up to date from the marks that git
holds, and reads only what is new there: so a response costs what touches it, however much waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from time import monotonic
from weakref import WeakKeyDictionary, WeakSet

from msgspec import Struct

from patchq.core.model.values import Problem
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.merges import line_hunks, touching
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines, image, inclusive
from patchq.gate.pipeline.progress import CandidateCommit, Decision
from patchq.gate.report.schema import PENDING_CONFLICT, Report, has_commit

Blobs = tuple[str | None, str | None]
"""The ids of a file's text before and after; None where there is no file."""
Named = dict[str, str | None]
"""The commits of batches by their ids."""
EditLines = tuple[str, str, tuple[int, int] | None]
"""Id, path and lines (1-based, inclusive, of the base) of an edit."""


class ProposedChange(Struct, frozen=True):
    """What a batch changes there, in the terms of its report: `lines` are 1-based and inclusive, of
    its base; None where it is the file as a whole.  An insertion has the line before it."""

    path: str
    does: str
    edit: str | None = None
    lines: tuple[int, int] | None = None


@dataclass
class Proposal:
    """A batch that waits: its commit, made of the target's tip of that time, and its edits."""

    id: str
    target: str
    agent: str | None
    commit: str
    base: str
    edits: tuple[EditLines, ...]
    changes: Mapping[str, Blobs]
    """What its commit does, path by path."""
    _spans: dict[str, list[Lines]] = field(default_factory=dict)
    stands: str = "waits for review"
    """What others are told of it."""
    on: str | None = None
    """The proposal that it stands on."""

    @cached_property
    def above(self) -> frozenset[str]:
        """The directories of the files that it makes."""
        return frozenset(
            str(parent)
            for path, (before, _) in self.changes.items()
            if before is None
            for parent in PurePosixPath(path).parents[:-1]
        )

    @property
    def reach(self) -> set[str]:
        """The paths at which it may collide with others."""
        return {*self.changes, *self.above}

    def spans(self, repo: Repository, path: str) -> list[Lines]:
        """The changed lines of a file that it edits, in the text before."""
        if path not in self._spans:
            before, after = self.changes[path]
            self._spans[path] = [
                (a0, a1) for a0, a1, _, _ in line_hunks(text(repo, before), text(repo, after))
            ]
        return self._spans[path]

    def place(self, repo: Repository, path: str, span: Lines | None = None) -> ProposedChange:
        """What the report calls these lines, or the file as a whole."""
        before, after = self.changes[path]
        does = "creates" if before is None else "deletes" if after is None else "changes"
        if span is None:
            own = [id for id, of, _ in self.edits if of == path]
            return ProposedChange(path, does, own[0] if own else self._only_edit())
        first, end = self._on_base(repo, path, span)
        near = [
            id
            for id, of, lines in self.edits
            if of == path and lines and lines[0] - 1 <= end and first <= lines[1]
        ]
        return ProposedChange(
            path, does, near[0] if near else self._only_edit(path), inclusive((first, end))
        )

    def _on_base(self, repo: Repository, path: str, span: Lines) -> Lines:
        """The lines as its base has them: the file may have changed before the commit was made."""
        entry = repo.tree(self.base).entry(path)
        before = self.changes[path][0]
        if entry is None or entry.kind != "file" or entry.oid == before:
            return span
        return image(span, line_hunks(text(repo, before), text(repo, entry.oid)))

    def _only_edit(self, path: str | None = None) -> str | None:
        """The id of the edit, if there is one only (of the path)."""
        ids = [id for id, of, _ in self.edits if path in (None, of)]
        return ids[0] if len(ids) == 1 else None


def changes(repo: Repository, commit: str) -> dict[str, Blobs]:
    """What a commit does to its parent's files."""
    return {
        path: (before and before[1], after and after[1])
        for path, (before, after) in repo.changes(repo.parents(commit)[0], commit).items()
    }


def text(repo: Repository, blob: str | None) -> bytes:
    return repo.raw(blob) if blob else b""


def decided(decision: Decision, candidate: CandidateCommit, repo: Repository) -> Proposal:
    """The proposal that a decision is, once it has landed."""
    return Proposal(
        decision.id,
        candidate.target,
        decision.header.agent,
        candidate.commit,
        candidate.base,
        tuple((edit.id, edit.path, edit.lines) for edit in decision.edits),
        changes(repo, candidate.commit),
        on=decision.on,
    )


def tried(decision: Decision, repo: Repository, stands: str = "") -> Proposal:
    """The proposal that the decision of a dry run would be; its texts are kept in memory."""
    assert decision.target
    assert decision.base
    edits = tuple((edit.id, edit.path, edit.lines) for edit in decision.edits)
    made: dict[str, Blobs] = {}
    for change in decision.changes:
        before = None if change.before is None else repo.keep_blob(change.before)
        if change.renamed_from is not None:
            made[change.renamed_from], before = (before, None), None
        made[change.path] = (before, None if change.after is None else repo.keep_blob(change.after))
    return Proposal(
        decision.id,
        decision.target,
        decision.header.agent,
        "",
        decision.base.commit,
        edits,
        made,
        stands=stands,
        on=decision.on,
    )


def reported(report: Report, commit: str, repo: Repository) -> Proposal | None:
    """The proposal of that commit which a report tells of; None if it tells of none, or the commit
    cannot be read."""
    if report.state != "proposed" or not has_commit(report):
        return None
    edits = tuple(
        (e.id, e.path, (e.lines[0], e.lines[1]) if e.lines else None) for e in report.edits
    )
    target, agent, base = report.target, report.agent, report.base.commit
    on = report.stands_on.batch if report.stands_on else None
    try:
        changed = changes(repo, commit)
    except ObjectDamaged:
        return None
    return Proposal(report.id, target, agent, commit, base, edits, changed, on=on)


def named(report: Report) -> Named:
    """The batches with which a report says that its batch collides, in its order."""
    others = [p.conflicts_with for p in report.problems if p.code == PENDING_CONFLICT]
    return {other.batch: other.commit for other in others if other and other.batch}


def named_by(problems: Sequence[Problem]) -> Named:
    """The same of a report that would have these problems."""
    others = [p.conflicts_with for p in problems if p.code == PENDING_CONFLICT]
    return {other.batch: other.commit for other in others if other and other.batch}


class Board:
    """The proposals that wait, each with those that its report names."""

    def __init__(self) -> None:
        self._proposals: dict[str, Proposal] = {}
        self._at: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._names: dict[str, Named] = {}
        self._on: dict[str, set[str]] = defaultdict(set)
        self.at = 0.0
        """When it was brought up to date."""
        self.new: set[str] = set()
        """Those that were not compared with what waits beside them yet."""
        self.stale: set[str] = set()
        """Those whose report may have to name others than it does."""

    def __contains__(self, id: str) -> bool:
        return id in self._proposals

    def __iter__(self) -> Iterator[str]:
        return iter(self._proposals)

    def __getitem__(self, id: str) -> Proposal:
        return self._proposals[id]

    def get(self, id: str) -> Proposal | None:
        return self._proposals.get(id)

    def names(self, id: str) -> Named:
        """What its report names, by id, with the commits."""
        return self._names.get(id, {})

    def near(self, target: str, paths: Iterable[str]) -> set[str]:
        """The proposals for the target that touch one of the paths."""
        keys = ((target, path) for path in paths)
        return {id for key in keys if key in self._at for id in self._at[key]}

    def beside(self, own: Proposal) -> set[str]:
        """The proposals with which this one may collide: not those of its own stack, which land
        before it or behind it, and never instead of it."""
        near = self.near(own.target, own.reach) - {own.id}
        return near - self.below(own) - self.above({own.id}) if near else near

    def below(self, own: Proposal) -> set[str]:
        """The proposals that this one stands on."""
        found: set[str] = set()
        on = own.on
        while on is not None and on not in found:
            found.add(on)
            there = self._proposals.get(on)
            on = there.on if there else None
        return found

    def above(self, ids: Iterable[str]) -> set[str]:
        """The proposals that stand on one of these, directly or on top of others."""
        found: set[str] = set()
        front = list(ids)
        while front:
            new = self._on.get(front.pop(), set()) - found
            found |= new
            front += new
        return found

    def next_above(self, ids: Iterable[str]) -> set[str]:
        """Those of them that stand directly on one of these."""
        return {above for id in ids for above in self._on.get(id, ())}

    def take(self, report: Report, commit: str, repo: Repository) -> None:
        """Take in a batch that waits from now on, at this commit, whose report has just been
        written: neither has to be read again."""
        proposal = reported(report, commit, repo)
        self.drop(report.id)
        if proposal:
            self._put(proposal, named(report))

    def told(self, id: str, names: Named) -> None:
        """The report names these now, and rightly so."""
        self._names[id] = names
        self.stale.discard(id)

    def update(self, context: RepoContext, marks: Mapping[str, str] | None = None) -> None:
        """Be what waits now; `marks` are the commits by their ids, if they are known already."""
        marks = waiting(context) if marks is None else marks
        self.at = monotonic()
        for id in [id for id, known in self._proposals.items() if marks.get(id) != known.commit]:
            self.drop(id)
        # One whose report is not there yet, or that was decided meanwhile, is looked at again.
        for id in marks.keys() - self._proposals.keys():
            if report := context.queue.load(id):
                self.take(report, marks[id], context.repo)

    def _put(self, proposal: Proposal, names: Named) -> None:
        self._proposals[proposal.id], self._names[proposal.id] = proposal, names
        for path in proposal.reach:
            self._at[proposal.target, path].add(proposal.id)
        if proposal.on is not None:
            self._on[proposal.on].add(proposal.id)
        self.new.add(proposal.id)

    def drop(self, id: str) -> None:
        """Take out a batch that does not wait any more, at least not as it did."""
        proposal = self._proposals.get(id)
        if proposal is None:
            return
        self.stale |= {other for other in self.beside(proposal) if id in self._names[other]}
        for path in proposal.reach:
            there = self._at[proposal.target, path]
            there.discard(id)
            if not there:
                del self._at[proposal.target, path]
        if proposal.on is not None:
            self._on[proposal.on].discard(id)
            if not self._on[proposal.on]:
                del self._on[proposal.on]
        del self._proposals[id], self._names[id]
        self.new.discard(id)
        self.stale.discard(id)


_boards: WeakKeyDictionary[Repository, Board] = WeakKeyDictionary()


def known(repo: Repository) -> Board | None:
    """The board as it was when this process last looked; None if it never did."""
    return _boards.get(repo)


def board(
    context: RepoContext, marks: Mapping[str, str] | None = None, within: float = 0.0
) -> Board:
    """What waits now; what other processes did `within` so many seconds may be missing."""
    found = _boards.setdefault(context.repo, Board())
    if monotonic() - found.at >= within or not found.at:
        found.update(context, marks)
    return found


_FEW = 32
"""So many proposals are read as fast as git is asked which of them matter."""
_asked: WeakSet[Repository] = WeakSet()


def beside(context: RepoContext, own: Proposal) -> dict[str, Proposal]:
    """What waits now and may collide with this one.

    A process that asks a second time keeps a board.  The first question reads no more than git
    finds to touch the same paths: a command asks once, and ends.
    """
    marks, repo = waiting(context), context.repo
    if known(repo) is None and repo not in _asked and len(marks) > _FEW:
        _asked.add(repo)
        if (near := _near(repo, own, marks)) is not None:
            found = Board()
            found.update(context, near)
            return {id: found[id] for id in found.beside(own)}
    found = board(context, marks)
    return {id: found[id] for id in found.beside(own)}


def _near(repo: Repository, own: Proposal, marks: Mapping[str, str]) -> dict[str, str] | None:
    """The marks of what changes a path of this one, or something below it; None: nobody knows."""
    changed = touching(repo, list(marks.values()), sorted(own.reach))
    if changed is None:
        return None
    made = tuple(f"{path}/" for path in own.changes)
    return {
        id: commit
        for id, commit in marks.items()
        if any(path in own.reach or path.startswith(made) for path in changed.get(commit, ()))
    }


def waiting(context: RepoContext) -> dict[str, str]:
    """The marks of what waits: commits by their ids; where others propose as well, of what waits on
    the branches that this process serves now."""
    marks = {
        name.removeprefix(records.WAITING): oid
        for name, oid in context.repo.refs(records.WAITING).items()
    }
    shared = context.queue.proposals() if marks else None
    return marks if shared is None else {id: oid for id, oid in marks.items() if id in shared}
