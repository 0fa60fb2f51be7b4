"""A commit made anew with other files or another message, and the files that a commit changes."""

from __future__ import annotations

import os
from pathlib import Path

from patchq.git.identity import Identity
from patchq.git.objects import Leaf, is_regular
from patchq.git.repository import Repository
from patchq.model.values import FileChange


def file_changes(repo: Repository, old: str, new: str) -> tuple[FileChange, ...]:
    """What happened to regular files between two commits; a rename is a deletion and a creation."""

    def content(leaf: Leaf | None) -> bytes | None:
        return repo.raw(leaf[1]) if leaf and is_regular(leaf[0]) else None

    found = []
    for path, (before, after) in repo.changes(old, new).items():
        executable = bool(after and after[0] & 0o100)
        change = FileChange(path, content(before), content(after), executable)
        if change.before is not None or change.after is not None:
            found.append(change)
    return tuple(found)


def amended(
    repo: Repository, commit: str, parent: str, changes: tuple[FileChange, ...], message: str
) -> tuple[str, str]:
    """The commit again, by the same people at the same time; its id and its tree's."""
    author, committer = people(repo, commit)
    return repo.write_commit(parent, changes, message, author, committer)


def people(repo: Repository, commit: str) -> tuple[Identity, Identity]:
    """The author and the committer of a commit."""
    there = repo._commit(commit)
    by, via = (
        Identity(who.name, who.email, who.time, who.offset)
        for who in (there.author, there.committer)
    )
    return by, via


def hooks_directory(repo: Repository) -> Path:
    """Where git looks for the repository's hooks (`core.hooksPath`, else `hooks`)."""
    named = repo.setting("core.hooksPath")
    if not named:
        return repo.commondir / "hooks"
    return Path(os.path.normpath((repo.workdir or repo.gitdir) / Path(named).expanduser()))
