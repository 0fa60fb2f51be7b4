"""Objects that a partial clone lacks, which git fetches from the remote that promised them.

`git clone --filter=blob:none` leaves out the contents of files until somebody needs them.  libgit2
knows nothing of that.  Trees have to be here: each would cost a question to the remote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING

import pygit2

from patchq.gate.errors import ObjectDamaged, RepositoryFault
from patchq.gate.git.command import QUIET, Git, plain_environment
from patchq.gate.git.faults import misconfigured
from patchq.gate.git.objects import is_blob

if TYPE_CHECKING:
    from patchq.gate.git.repository import CommitTree, Repository

_MARK = re.compile(r"remote\.(.*)\.(promisor|partialclonefilter)")
_MOST_AHEAD = 256
_REST_SECONDS = 30.0
"""A remote that did not answer is left alone so long: each question may take its time-out."""
_FETCH_SECONDS = 60.0
_COMMITS = 100  # whose trees are looked for


def promisors(handle: pygit2.Repository) -> list[str]:
    """Return the remotes that promised objects.

    Raises `RepositoryFault` where trees are missing."""
    found, filters = dict[str, None](), list[str]()
    try:
        for entry in handle.config:
            mark = _MARK.fullmatch(entry.name)
            if mark and mark[2] == "partialclonefilter":
                filters.append(str(entry.value))
            if mark and (mark[2] != "promisor" or handle.config.get_bool(entry.name)):
                found[mark[1]] = None
    except pygit2.GitError as error:
        raise misconfigured(error) from None
    left_out = [text for text in filters if "tree:" in text]
    if found and left_out and _lacks_trees(handle.path):
        raise RepositoryFault(
            f"cannot work in {handle.path}: it is a partial clone without all trees "
            f"({left_out[0]})",
            f"git fetch --refetch --filter=blob:none {next(iter(found))}",
        )
    return list(found)


def _lacks_trees(gitdir: str) -> bool:
    words = ("rev-list", "--objects", "--filter=blob:none", "--missing=print", "--all")
    git = Git(plain_environment(GIT_DIR=gitdir), QUIET)
    return b"\n?" in git.run(*words, f"--max-count={_COMMITS}").stdout


class Promised:
    """Fetches what is missing, with more at once the more is asked for."""

    def __init__(self, repo: Repository, remotes: Iterable[str]) -> None:
        self._repo, self._remotes = repo, tuple(remotes)
        self._ahead = 0
        self._whole: str | None = None  # the tree whose files were all here last
        self._away: tuple[float, str] = (0.0, "")

    def fetch(self, oids: Iterable[str]) -> None:
        """Bring the objects here.  Raises `ObjectDamaged` with the remote's words."""
        from patchq.gate.git.branches.pushing import Remote  # few clones are partial

        here, memory = self._repo.raw_repository, self._repo.unwritten
        missing = [
            oid for oid in dict.fromkeys(oids) if memory.content(oid) is None and oid not in here
        ]
        if not missing or not self._remotes:
            return
        until, words = self._away
        if monotonic() >= until:
            for name in self._remotes:
                done = Remote(self._repo, name, _FETCH_SECONDS).fetch_objects(missing)
                if done.code == 0:
                    return
                words = f"{name} does not give it: {done.words}"
            self._away = monotonic() + _REST_SECONDS, words
        raise ObjectDamaged(
            f"cannot read object {missing[0]}, which this partial clone has not fetched: {words}",
            f"see what `git fetch {self._remotes[0]}` says",
        )

    def fetch_files(self, tree: CommitTree, paths: Iterable[str]) -> None:
        """Bring files of a commit here, together."""
        leaves = [self._repo.leaf(tree.root, path) for path in paths]
        self.fetch(leaf[1] for leaf in leaves if leaf and is_blob(leaf[0]))

    def read_ahead(self, tree: CommitTree, path: str, oid: str) -> None:
        """Bring a file here, and of a search through many those that come next."""
        if oid in self._repo.raw_repository:
            return
        self._ahead = min(2 * self._ahead + 1, _MOST_AHEAD)
        paths = tree.listing().paths
        at = paths.index(path) if path in paths else len(paths)
        self.fetch_files(tree, [path, *paths[at + 1 : at + self._ahead]])

    def complete(self, root: str) -> None:
        """Bring all files of a tree here, for a program that looks at them."""
        changed = self._repo.differences(self._whole, root)
        self.fetch(leaf[1] for _, leaf in changed.values() if leaf and is_blob(leaf[0]))
        self._whole = root
