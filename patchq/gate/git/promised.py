"""Objects missing in a partial clone, which git fetches from the promisor remote.

`git clone --filter=blob:none` leaves out the contents of files until a command needs them.  libgit2
knows nothing of that.  Trees have to be here: each would cost a question to the remote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import pygit2

from patchq.gate.errors import ObjectDamaged, RepositoryFault
from patchq.gate.git.command import QUIET, Git, misconfigured, plain_environment
from patchq.gate.git.objects import Trees, differences, is_blob

_MARK = re.compile(r"remote\.(.*)\.(promisor|partialclonefilter)")
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
