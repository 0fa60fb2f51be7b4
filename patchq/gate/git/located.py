"""Files of the repository that absolute paths name.

Editing tools name files by absolute paths, in whichever work tree their agent works.  A path below
a tree that is gone, below a repository of its own, or that git ignores names no file that the agent
was shown here.
"""

from __future__ import annotations

import os
from functools import cached_property

import pygit2
from msgspec import Struct

from patchq.gate.git.checkout import Checkout, missing, registered
from patchq.gate.git.repository import Repository


class Whereabouts(Struct, frozen=True):
    """The `path` below the root of a work tree, or None with the `reason`; both if git ignores it.

    The reason is a clause that follows the path in a sentence."""

    path: str | None
    reason: str = ""


class WorkTrees:
    """The registered work trees of a repository, read when they are first asked for."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._asked: dict[str, Whereabouts] = {}

    def find(self, path: str) -> Whereabouts:
        """Return the file that the absolute path names; links to directories are followed.

        A link at its end is itself the file: who deletes it does not mean the one it leads to."""
        if path not in self._asked:
            try:
                self._asked[path] = self._find(path)
            except (OSError, ValueError):  # no name of a file system
                self._asked[path] = Whereabouts(None, "is no path that can be looked up")
        return self._asked[path]

    def ignore(self, path: str) -> bool:
        """Return True if git ignores a path below the root of patchq's own work tree."""
        repo = self._repo
        return repo.workdir is not None and repo.raw_repository.path_is_ignored(path)

    def _find(self, path: str) -> Whereabouts:
        if ".." in path.split("/"):
            return Whereabouts(None, "climbs with `..`")
        folder, name = os.path.split(os.path.normpath(path))
        real = os.path.join(os.path.realpath(folder), name)
        above = [root for root in self._roots if real.startswith(f"{root.rstrip('/')}/")]
        if not above:
            return Whereabouts(None, "is below no work tree of this repository")
        root = max(above, key=len)
        if missing(self._roots[root]):
            return Whereabouts(None, f"is below {root}, a work tree that is gone")
        below = os.path.relpath(real, root)
        parts, place = below.split("/"), root
        for part in parts[:-1]:
            place = os.path.join(place, part)
            if os.path.lexists(os.path.join(place, ".git")):
                return Whereabouts(None, f"is below {place}, a repository of its own")
        ignores = parts[0] != ".git" and self._handle(root).path_is_ignored(below)
        return Whereabouts(below, "is one that git ignores" if ignores else "")

    def _handle(self, root: str) -> pygit2.Repository:
        workdir = self._repo.workdir
        own = workdir is not None and os.path.realpath(workdir) == root
        return self._repo.raw_repository if own else pygit2.Repository(root)

    @cached_property
    def _roots(self) -> dict[str, Checkout]:
        return {os.path.realpath(one.workdir): one for one in registered(self._repo)}
