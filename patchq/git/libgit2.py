"""libgit2's manners: opening a repository within bounds of memory, and what it raises, as faults
that say what to do."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, EIO, EMFILE, ENOSPC, EROFS
from pathlib import Path

import pygit2

from patchq.model.errors import DiskFault, Fault, RepositoryFault, UsageError

CACHE_BYTES = 32 << 20
MAPPED_BYTES = 64 << 20
OPEN_PACKS = 64
"""libgit2 sets no limit by itself, and keeps every pack open that it has read from."""
FSCK = "run `git fsck --full` and restore what it names from another clone"
_DISK = tuple(map(os.strerror, (ENOSPC, EDQUOT, EIO, EROFS, EMFILE)))

_CURES = {
    "not owned": "if you trust it: git config --global --add safe.directory '{root}'",
    "refstorage": "patchq needs refs in files: git refs migrate --ref-format=files",
    "objectformat": "patchq needs SHA-1 object names: clone from a SHA-1 repository",
    "object format": "patchq needs SHA-1 object names: clone from a SHA-1 repository",
    "partialclone": "patchq needs every object: make a full clone, without --filter",
}


def open_repository(path: Path) -> pygit2.Repository:
    """The repository that `path` is in; `errors.UsageError` if it is in none."""
    pygit2.settings.cache_max_size(CACHE_BYTES)
    pygit2.settings.mwindow_mapped_limit = MAPPED_BYTES
    pygit2.settings.mwindow_file_limit = OPEN_PACKS
    found = None
    with suppress(KeyError):  # no such directory
        found = pygit2.discover_repository(os.fspath(path))
    if found is None:
        raise UsageError(f"{path} is not in a git repository", "run `git init` there first")
    try:
        return pygit2.Repository(found)
    except pygit2.GitError as error:
        cures = (cure for word, cure in _CURES.items() if word in str(error).lower())
        cure = next(cures, f"see what `git -C {path} status` says").format(
            path=path, root=_root(found)
        )
        raise RepositoryFault(f"cannot open {found}: {error}", cure) from None


def _root(found: str) -> str:
    """The directory whose owner git looks at: it takes no other spelling."""
    gitdir = os.path.realpath(found)
    return os.path.dirname(gitdir) if os.path.basename(gitdir) == ".git" else gitdir


def fault(what: str, error: Exception) -> Fault:
    disk = next((words for words in _DISK if words in str(error)), None)
    return DiskFault(f"{what}: {disk}") if disk else RepositoryFault(f"{what}: {error}", FSCK)
