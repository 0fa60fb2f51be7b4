"""Which files git takes for renamed ones: those that go and come with most of their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pygit2
from pygit2.enums import DeltaStatus, DiffFind

from patchq.git.repository import Repository
from patchq.model.values import FileChange

_ALIKE = 50
"""The least share of a renamed file that it keeps, in percent, as git has it."""


def found(
    repo: Repository, changes: Sequence[FileChange], old: str, new: str
) -> tuple[FileChange, ...]:
    """The changes between the commits `old` and `new`, what git takes for a rename as one."""
    gone = {change.path: change for change in changes if change.after is None}
    come = {change.path: change for change in changes if change.before is None}
    if not (gone and come):
        return tuple(changes)
    before, after = (repo.raw_repository[repo.tree(commit).root] for commit in (old, new))
    assert isinstance(before, pygit2.Tree)
    assert isinstance(after, pygit2.Tree)
    diff = before.diff_to_tree(after)
    diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=_ALIKE)
    pairs = {
        delta.new_file.path: delta.old_file.path
        for delta in diff.deltas
        if delta.status == DeltaStatus.RENAMED
        and delta.new_file.path in come
        and delta.old_file.path in gone
    }
    moved = {path: _moved(gone[source], come[path]) for path, source in pairs.items()}
    return tuple(
        moved.get(change.path, change) for change in changes if change.path not in pairs.values()
    )


def _moved(gone: FileChange, come: FileChange) -> FileChange:
    was = None if gone.executable == come.executable else gone.executable
    return replace(come, before=gone.before, renamed_from=gone.path, was_executable=was)
