"""Opening a repository with libgit2, if it is one that patchq can work in.

Refs have to be files, and objects SHA-1; git lets its owner alone in.  What cannot be worked in is
refused here, with its cure, before anything is claimed.

`git clone --filter=blob:none` leaves out the contents of files until a command needs them.  libgit2
knows nothing of that, so git fetches them from the promisor remote.  Trees have to be here: each
would cost a question to the remote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pygit2
from pygit2.enums import ObjectType

from patchq.gate.errors import ObjectDamaged, RepositoryFault, UsageError
from patchq.gate.git.command import QUIET, Git, misconfigured, plain_environment
from patchq.gate.git.objects import Trees, differences, is_blob

CACHE_BYTES = 32 << 20
# The largest objects that are kept in it. By itself libgit2 keeps trees up to 4 KiB and no blobs:
# a path in a large directory would cost reading all of it, and a search in other files each of
# them anew for every response.
CACHED_TREE, CACHED_BLOB = 16 << 20, 256 << 10
MAPPED_BYTES = 64 << 20
OPEN_PACKS = 64  # libgit2 sets no limit by itself, and keeps every pack open that it has read from
_MARK = re.compile(r"remote\.(.*)\.(promisor|partialclonefilter)")
# A remote that did not answer is left alone so long: each question may take its time-out.
_REST_SECONDS = 30.0
FETCH_SECONDS = 60.0
_FETCH = (
    *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
    *("--no-write-fetch-head", "--no-recurse-submodules", "--filter=blob:none", "--stdin"),
)  # as git itself does
_COMMITS = 100  # whose trees are looked for
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


def promisors(handle: pygit2.Repository) -> list[str]:
    """Return the remotes that promised objects.

    Raises `RepositoryFault` where trees are missing."""
    filters = dict[str, str]()
    try:
        for entry in handle.config:
            mark = _MARK.fullmatch(entry.name)
            if mark and mark[2] == "partialclonefilter":
                filters[mark[1]] = str(entry.value)
            elif mark and handle.config.get_bool(entry.name):
                filters.setdefault(mark[1], "")
    except pygit2.GitError as error:
        raise misconfigured(error) from None
    for remote, left_out in filters.items():
        if "tree:" in left_out and _lacks_trees(handle.path):
            raise RepositoryFault(
                f"cannot work in {handle.path}: it is a partial clone without all trees "
                f"({left_out})",
                f"git fetch --refetch --filter=blob:none {remote}",
            )
    return list(filters)


def _lacks_trees(gitdir: str) -> bool:
    words = ("rev-list", "--objects", "--filter=blob:none", "--missing=print", "--all")
    git = Git(plain_environment(GIT_DIR=gitdir), QUIET)
    return b"\n?" in git.run(*words, f"--max-count={_COMMITS}").out


class Promised:
    """Fetches from the remotes of a partial clone; a whole repository has none."""

    def __init__(
        self, trees: Trees, has: Callable[[str], bool], remotes: Sequence[str], git: Git
    ) -> None:
        self._trees, self._has, self._remotes, self._git = trees, has, remotes, git
        self._whole: str | None = None  # the tree whose files were all here last
        self._until, self._why = 0.0, ""

    def fetch(self, oids: Iterable[str]) -> None:
        """Fetch the objects; raise `ObjectDamaged` with the remote's words."""
        missing = (
            [oid for oid in dict.fromkeys(oids) if not self._has(oid)] if self._remotes else []
        )
        if not missing:
            return
        for name in self._remotes if monotonic() >= self._until else ():
            done = self._git.run(*_FETCH, name, stdin="\n".join(missing).encode())
            if done.code == 0:
                return
            self._until = monotonic() + _REST_SECONDS
            self._why = f"{name} does not give it: {done.words}"
        raise ObjectDamaged(
            f"cannot read object {missing[0]}, which this partial clone has not fetched: "
            f"{self._why}",
            f"see what `git fetch {self._remotes[0]}` says",
        )

    def fetch_files(self, root: str, paths: Iterable[str]) -> None:
        leaves = (self._trees.leaf(root, path) for path in paths)
        self.fetch(leaf[1] for leaf in leaves if leaf and is_blob(leaf[0]))

    def complete(self, root: str) -> None:
        """Bring all files of a tree here, for a program that looks at them."""
        if not self._remotes:
            return
        changed = differences(self._trees, self._whole, root)
        self.fetch(leaf[1] for _, leaf in changed.values() if leaf and is_blob(leaf[0]))
        self._whole = root
