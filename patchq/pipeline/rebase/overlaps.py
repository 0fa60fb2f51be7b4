"""Where the commits of two batches change the same lines, or stand in each other's way as files.

Lines are compared in the texts that the commits change.  Where those differ, since the target moved
between the two, the lines of one are carried to the other's text first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from patchq.git.hunks import line_hunks
from patchq.git.repository import Repository
from patchq.pipeline.rebase.lines import Lines, image, inclusive

Blobs = tuple[str | None, str | None]
"""The ids of a file's text before and after; None where there is no file."""
EditLines = tuple[str, str, tuple[int, int] | None]
"""Id, path and lines (1-based, inclusive, of the base) of an edit."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
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

    @cached_property
    def above(self) -> frozenset[str]:
        """The directories of the files that it makes."""
        new = [path for path, (before, _) in self.changes.items() if before is None]
        return frozenset(str(p) for path in new for p in PurePosixPath(path).parents[:-1])

    @property
    def reach(self) -> set[str]:
        """The paths at which it may collide with others."""
        return {*self.changes, *self.above}

    def spans(self, repo: Repository, path: str) -> list[Lines]:
        """The changed lines of a file that it edits, in the text before."""
        if path not in self._spans:
            before, after = self.changes[path]
            hunks = line_hunks(_text(repo, before), _text(repo, after))
            self._spans[path] = [(a0, a1) for a0, a1, _, _ in hunks]
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
        edit = near[0] if near else self._only_edit(path)
        return ProposedChange(path, does, edit, inclusive((first, end)))

    def _on_base(self, repo: Repository, path: str, span: Lines) -> Lines:
        """The lines as its base has them: the file may have changed before the commit was made."""
        entry = repo.tree(self.base).entry(path)
        before = self.changes[path][0]
        if entry is None or entry.kind != "file" or entry.oid == before:
            return span
        return image(span, line_hunks(_text(repo, before), _text(repo, entry.oid)))

    def _only_edit(self, path: str | None = None) -> str | None:
        """The id of the edit, if there is one only (of the path)."""
        ids = [id for id, of, _ in self.edits if path in (None, of)]
        return ids[0] if len(ids) == 1 else None


def changes(repo: Repository, commit: str) -> dict[str, Blobs]:
    """What a commit does to its parent's files."""
    changed = repo.changes(repo.parents(commit)[0], commit)
    return {
        path: (before and before[1], after and after[1])
        for path, (before, after) in changed.items()
    }


def collisions(
    repo: Repository, one: Proposal, other: Proposal
) -> Iterator[tuple[ProposedChange, ProposedChange]]:
    """The places where both change something that touches: lines that they share or that border
    on each other, and files that one of them makes or removes."""
    for path in sorted(one.changes.keys() & other.changes.keys()):
        if None in (*one.changes[path], *other.changes[path]):
            yield one.place(repo, path), other.place(repo, path)
            continue
        theirs = _carried(repo, other, path, one)
        for ours in one.spans(repo, path):
            for span, there in theirs:
                if ours[0] <= there[1] and there[0] <= ours[1]:
                    yield one.place(repo, path, ours), other.place(repo, path, span)
    yield from _file_and_directory(repo, one, other)
    yield from ((ours, theirs) for theirs, ours in _file_and_directory(repo, other, one))


def _file_and_directory(
    repo: Repository, one: Proposal, other: Proposal
) -> Iterator[tuple[ProposedChange, ProposedChange]]:
    """A file of the one where the other has a directory."""
    for path in sorted(one.changes.keys() & other.above if other.above else ()):
        if one.changes[path][1] is not None:
            below = next(new for new in sorted(other.changes) if new.startswith(f"{path}/"))
            yield one.place(repo, path), other.place(repo, below)


def _carried(
    repo: Repository, batch: Proposal, path: str, to: Proposal
) -> list[tuple[Lines, Lines]]:
    """The batch's changed lines of a file, and where they are in the text that `to` changes."""
    spans, before, there = batch.spans(repo, path), batch.changes[path][0], to.changes[path][0]
    if before == there:
        return [(span, span) for span in spans]
    since = line_hunks(_text(repo, before), _text(repo, there))
    return [(span, image(span, since)) for span in spans]


def _text(repo: Repository, blob: str | None) -> bytes:
    return repo.raw(blob) if blob else b""
