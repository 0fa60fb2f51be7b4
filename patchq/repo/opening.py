"""Opening a repository, within bounds of memory, and saying why one cannot be opened."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pygit2

from patchq.errors import RepositoryFault, UsageError

CACHE_BYTES = 32 << 20
MAPPED_BYTES = 64 << 20
_CURES = {
    "not owned": "if you trust it: git config --global --add safe.directory {path}",
    "refstorage": "patchq needs refs in files: git refs migrate --ref-format=files",
    "objectformat": "patchq needs SHA-1 object names: clone from a SHA-1 repository",
    "object format": "patchq needs SHA-1 object names: clone from a SHA-1 repository",
    "partialclone": "patchq needs every object: make a full clone, without --filter",
}


def open_repository(path: Path) -> pygit2.Repository:
    """The repository that `path` is in; `errors.UsageError` if it is in none."""
    pygit2.settings.cache_max_size(CACHE_BYTES)
    pygit2.settings.mwindow_mapped_limit = MAPPED_BYTES
    found = None
    with suppress(KeyError):  # no such directory
        found = pygit2.discover_repository(os.fspath(path))
    if found is None:
        raise UsageError(f"{path} is not in a git repository", "run `git init` there first")
    try:
        return pygit2.Repository(found)
    except pygit2.GitError as error:
        cures = (cure for word, cure in _CURES.items() if word in str(error).lower())
        cure = next(cures, f"see what `git -C {path} status` says").format(path=path)
        raise RepositoryFault(f"cannot open {found}: {error}", cure) from None
