"""Which file of the repository an absolute path names.

Editing tools name files by absolute paths, in whichever work tree their agent stands.  A path below
one that is gone, below a repository of its own, or that git ignores is no file that was seen here.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import pygit2
from msgspec import Struct

from patchq.gate.git.checkout import workdir_of
from patchq.gate.git.reffiles import heads
from patchq.gate.git.repository import Repository


class Whereabouts(Struct, frozen=True):
    """Where an absolute path leads: the `path` below the root of a work tree, or None, with the
    `reason` as a clause that follows the path in a sentence; both for a path that git ignores."""

    path: str | None
    reason: str = ""


class _WorkTree(Struct, frozen=True):
    root: str
    """Its real path."""
    stands: bool
    """Whether it is there, and this repository's."""


class WorkTrees:
    """The registered work trees of a repository, as they stand when they are first asked for."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._asked: dict[str, Whereabouts] = {}

    def find(self, path: str) -> Whereabouts:
        """What the absolute path names; links to directories are followed.  A link at its end is
        what the path names: who deletes or renames it does not mean the file that it leads to."""
        if path not in self._asked:
            try:
                self._asked[path] = self._find(path)
            except (OSError, ValueError):  # no name of a file system
                self._asked[path] = Whereabouts(None, "is no path that can be looked up")
        return self._asked[path]

    def ignore(self, path: str) -> bool:
        """Whether git ignores a path below the root of the work tree that patchq stands in."""
        repo = self._repo
        return repo.workdir is not None and repo.raw_repository.path_is_ignored(path)

    def _find(self, path: str) -> Whereabouts:
        if ".." in path.split("/"):
            return Whereabouts(None, "climbs with `..`")
        folder, name = os.path.split(os.path.normpath(path))
        real = os.path.join(os.path.realpath(folder), name)
        own = [tree for tree in self._all if real.startswith(f"{tree.root.rstrip('/')}/")]
        if not own:
            return Whereabouts(None, "is below no work tree of this repository")
        tree = max(own, key=lambda tree: len(tree.root))
        if not tree.stands:
            return Whereabouts(None, f"is below {tree.root}, a work tree that is gone")
        below = os.path.relpath(real, tree.root)
        parts, place = below.split("/"), tree.root
        for part in parts[:-1]:
            place = os.path.join(place, part)
            if os.path.lexists(os.path.join(place, ".git")):
                return Whereabouts(None, f"is below {place}, a repository of its own")
        ignores = parts[0] != ".git" and self._handle(tree).path_is_ignored(below)
        return Whereabouts(below, "is one that git ignores" if ignores else "")

    def _handle(self, tree: _WorkTree) -> pygit2.Repository:
        workdir = self._repo.workdir
        own = workdir is not None and os.path.realpath(workdir) == tree.root
        return self._repo.raw_repository if own else pygit2.Repository(tree.root)

    @cached_property
    def _all(self) -> tuple[_WorkTree, ...]:
        found = []
        for gitdir, _ in heads(self._repo.commondir):
            if workdir := workdir_of(self._repo, gitdir):
                root = os.path.realpath(workdir)
                stands = os.path.isdir(root) and self._leads_back(Path(root), gitdir)
                found.append(_WorkTree(root, stands))
        return tuple(found)

    def _leads_back(self, root: Path, gitdir: Path) -> bool:
        """Whether a linked work tree's `.git` names its git directory, as git wrote it."""
        if gitdir == self._repo.commondir:
            return True
        try:
            text = (root / ".git").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
        named = text.removeprefix("gitdir:").strip()
        return os.path.realpath(root / named) == os.path.realpath(gitdir)
