"""Opening a repository with libgit2, if it is one that patchq can work in.

Refs have to be files, and objects SHA-1; git lets its owner alone in.  What cannot be worked in is
refused here, with its cure, before anything is claimed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from patchq.gate.errors import RepositoryFault, UsageError

CACHE_BYTES = 32 << 20
# The largest objects that are kept in it. By itself libgit2 keeps trees up to 4 KiB and no blobs:
# a path in a large directory would cost reading all of it, and a search in other files each of
# them anew for every response.
CACHED_TREE, CACHED_BLOB = 16 << 20, 256 << 10
MAPPED_BYTES = 64 << 20
OPEN_PACKS = 64  # libgit2 sets no limit by itself, and keeps every pack open that it has read from
_SHA1 = (
    "patchq needs SHA-1 object names, which a repository never changes: git fast-export --all | "
    "git -C NEW fast-import, into one made by git init --object-format=sha1"
)
_CURES = {
    "not owned": "if you trust it: git config --global --add safe.directory '{root}'",
    "refstorage": "patchq needs refs in files: git refs migrate --ref-format=files (git 2.46 or "
    "newer, and no linked work trees meanwhile)",
    "objectformat": _SHA1,
    "object format": _SHA1,
    "partialclone": "have git mark the clone as it does since 2.24: git config "
    "remote.origin.promisor true; git config --unset extensions.partialClone",
}


def open_handle(path: Path) -> pygit2.Repository:
    """Return the repository that `path` is in, with libgit2's memory kept within bounds.

    `UsageError` if it is in none, `RepositoryFault` where patchq cannot work in it.
    """
    _set_limits()
    found = None
    with suppress(KeyError):  # no such directory
        found = pygit2.discover_repository(os.fspath(path))
    if found is None:
        raise UsageError(f"{path} is not in a git repository", "run `git init` there first")
    try:
        handle = pygit2.Repository(found)
    except pygit2.GitError as error:
        cures = (cure for word, cure in _CURES.items() if word in str(error).lower())
        cure = next(cures, f"see what `git -C {path} status` says")
        # The directory whose owner git looks at: it takes no other spelling.
        gitdir = Path(os.path.realpath(found))
        root = gitdir.parent if gitdir.name == ".git" else gitdir
        raise RepositoryFault(
            f"cannot open {found}: {error}", cure.format(path=path, root=root)
        ) from None
    return handle


def _set_limits() -> None:
    pygit2.settings.cache_max_size(CACHE_BYTES)
    pygit2.settings.cache_object_limit(ObjectType.TREE, CACHED_TREE)
    pygit2.settings.cache_object_limit(ObjectType.BLOB, CACHED_BLOB)
    pygit2.settings.mwindow_mapped_limit = MAPPED_BYTES
    pygit2.settings.mwindow_file_limit = OPEN_PACKS
