"""Objects missing in a partial clone, which git fetches from the promisor remote.

`git clone --filter=blob:none` leaves out the contents of files until a command needs them.  libgit2
knows nothing of that.  Trees have to be here: each would cost a question to the remote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import pygit2

from patchq.core.model.listing import Listing
from patchq.gate.errors import ObjectDamaged, RepositoryFault
from patchq.gate.git.command import QUIET, Git, misconfigured, plain_environment
from patchq.gate.git.objects import Trees, differences, is_blob

_MARK = re.compile(r"remote\.(.*)\.(promisor|partialclonefilter)")
_MOST_AHEAD = 256
# A remote that did not answer is left alone so long: each question may take its time-out.
_REST_SECONDS = 30.0
FETCH_SECONDS = 60.0
_FETCH = (
    *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
    *("--no-write-fetch-head", "--no-recurse-submodules", "--filter=blob:none", "--stdin"),
)  # as git itself does
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
    return b"\n?" in git.run(*words, f"--max-count={_COMMITS}").out


class Promised:
    def __init__(
        self, trees: Trees, has: Callable[[str], bool], remotes: Sequence[str], git: Git
    ) -> None:
        self._trees, self._has, self._remotes, self._git = trees, has, remotes, git
        self._ahead = 0
        self._whole: str | None = None  # the tree whose files were all here last
        self._until, self._why = 0.0, ""

    def fetch(self, oids: Iterable[str]) -> None:
        """Fetch the objects; raise `ObjectDamaged` with the remote's words."""
        missing = [oid for oid in dict.fromkeys(oids) if not self._has(oid)]
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
        leaves = [self._trees.leaf(root, path) for path in paths]
        self.fetch(leaf[1] for leaf in leaves if leaf and is_blob(leaf[0]))

    def read_ahead(self, root: str, path: str, listing: Callable[[], Listing]) -> None:
        """Bring a file here, and of a search through many those that come next."""
        leaf = self._trees.leaf(root, path)
        if leaf is None or self._has(leaf[1]):
            return
        self._ahead = min(2 * self._ahead + 1, _MOST_AHEAD)
        paths = listing().paths
        at = paths.index(path) if path in paths else len(paths)
        self.fetch_files(root, [path, *paths[at + 1 : at + self._ahead]])

    def complete(self, root: str) -> None:
        """Bring all files of a tree here, for a program that looks at them."""
        changed = differences(self._trees, self._whole, root)
        self.fetch(leaf[1] for _, leaf in changed.values() if leaf and is_blob(leaf[0]))
        self._whole = root
