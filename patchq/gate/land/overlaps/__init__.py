"""Changes that cannot both land as they are, whether they wait, land or are being written.

Two changes for one target overlap where their changed lines share a line or border on each other,
and where one of them makes or removes a file that the other one touches.  Lines are compared in the
texts that the commits change.  Where these differ, since the target moved between the two, the
lines of one are carried to the other's text first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from patchq.core.model.values import EditOutcome
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.merges import line_hunks
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.lines import Lines, image, inclusive
from patchq.gate.pipeline.progress import CandidateCommit, Decision
from patchq.gate.report.schema import Report, has_commit

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
    """The changes of its commit, path by path."""
    kind: Literal["waits", "held", "worktree", "branch"] = "waits"
    on: str | None = None
    """The proposal that it depends on."""
    known_spans: dict[str, list[Lines]] = field(default_factory=dict)

    @cached_property
    def above(self) -> frozenset[str]:
        """The directories of the files that it makes."""
        made = (path for path, (before, _) in self.changes.items() if before is None)
        return frozenset(str(top) for path in made for top in PurePosixPath(path).parents[:-1])

    @property
    def reach(self) -> set[str]:
        """The paths at which it may overlap others."""
        return {*self.changes, *self.above}

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
        near = own if lines is None else [edit for edit in own if _borders(edit, lines)]
        if not near:
            near = own if lines else list(self.edits)
            near = near if len(near) == 1 else []
        return ChangedPlace(path, does, near[0].id if near else None, lines and inclusive(lines))

    def _on_base(self, repo: Repository, path: str, span: Lines) -> Lines:
        """Return the lines in its base: the file may have changed before the commit was made."""
        entry = repo.tree(self.base).entry(path)
        before = self.changes[path][0]
        if entry is None or entry.kind != "file" or entry.oid == before:
            return span
        return image(span, line_hunks(text(repo, before), text(repo, entry.oid)))


def _borders(edit: EditOutcome, lines: Lines) -> bool:
    first, end = lines
    return edit.lines is not None and edit.lines[0] - 1 <= end and first <= edit.lines[1]


def changed_files(repo: Repository, commit: str) -> dict[str, Blobs]:
    """Return what a commit does to its parent's files."""
    return {
        path: (before and before[1], after and after[1])
        for path, (before, after) in repo.changes(repo.parents(commit)[0], commit).items()
    }


def text(repo: Repository, blob: str | None) -> bytes:
    """Return the bytes of a blob; none for no file."""
    return repo.raw(blob) if blob else b""


def decided(decision: Decision, candidate: CandidateCommit, repo: Repository) -> Change:
    """Return the change that a decision is once it has landed."""
    agent, files = decision.header.agent, changed_files(repo, candidate.commit)
    base, edits = candidate.base, decision.edits
    return Change(
        decision.id, candidate.target, agent, candidate.commit, base, edits, files, on=decision.on
    )


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


class Index(dict[str, Change]):
    """Changes by their ids, and by the paths that they touch."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._on: dict[str, set[str]] = defaultdict(set)

    def add(self, change: Change) -> None:
        """Take in a change."""
        self[change.id] = change
        for path in change.reach:
            self._at[change.target, path].add(change.id)
        if change.on is not None:
            self._on[change.on].add(change.id)

    def remove(self, id: str) -> None:
        """Take out a change."""
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
        """Return the changes that depend on one of these, directly or not."""
        found, front = set[str](), list(ids)
        while front:
            new = self._on.get(front.pop(), set()) - found
            found |= new
            front += new
        return found


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
    yield from _file_and_directory(one, other)
    yield from ((ours, theirs) for theirs, ours in _file_and_directory(other, one))


def _file_and_directory(one: Change, other: Change) -> Iterator[tuple[Place, Place]]:
    """Yield each file of the one where the other has a directory."""
    for path in sorted(one.changes.keys() & other.above if other.above else ()):
        if one.changes[path][1] is not None:
            below = next(new for new in sorted(other.changes) if new.startswith(f"{path}/"))
            yield (path, None), (below, None)


def _carried(repo: Repository, batch: Change, path: str, to: Change) -> list[tuple[Lines, Lines]]:
    """Return the changed lines of a file, and where they are in the text that `to` changes."""
    spans, before, there = batch.spans(repo, path), batch.changes[path][0], to.changes[path][0]
    if before == there:
        return [(span, span) for span in spans]
    since = line_hunks(text(repo, before), text(repo, there))
    return [(span, image(span, since)) for span in spans]
