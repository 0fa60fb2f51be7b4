"""New objects: blobs, the directories above them and nothing else, commits.

Each is read back, since an object that "exists already" is not written again, though a power cut
may have left it empty.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import pygit2

from patchq.errors import RepositoryFault
from patchq.identity import Identity
from patchq.objects import TREE, Node
from patchq.repo.faults import FSCK, fault
from patchq.repo.unwritten import Unwritten


class Writer:
    """Makes objects; `objects` is the directory whose damaged files are replaced."""

    def __init__(self, repo: pygit2.Repository, unwritten: Unwritten, objects: Path) -> None:
        self._repo = repo
        self._unwritten = unwritten
        self._objects = objects

    def commit(
        self, root: str, parent: str | None, message: str, author: Identity, committer: Identity
    ) -> str:
        if "\0" in message:
            raise RepositoryFault("a commit message cannot hold a NUL byte")
        by, via = (pygit2.Signature(p.name, p.email, p.when, p.offset) for p in (author, committer))
        create = self._repo.create_commit
        tree, parents = pygit2.Oid(hex=root), [parent] if parent else []
        return str(self._keep(partial(create, None, by, via, message, tree, parents)))

    def blob(self, data: bytes) -> str:
        return str(self._keep(partial(self._repo.create_blob, data)))

    def tree(self, base: str, node: Node) -> str:
        """The tree `base` with the changes."""
        return str(self._graft(base, node) or self._keep(self._repo.TreeBuilder().write))

    def _graft(self, base: str | None, node: Node) -> pygit2.Oid | None:
        """The tree `base` with the changes; None when nothing is left in it."""
        new = self._repo.TreeBuilder
        builder = new(cast(pygit2.Tree, self._repo[base])) if base else new()
        for name, child in node.items():
            there = builder.get(name)
            if isinstance(child, dict):
                below = str(there.id) if isinstance(there, pygit2.Tree) else None
                oid, mode = self._graft(below, child), TREE
            else:
                oid, mode = (pygit2.Oid(hex=child[1]), child[0]) if child else (None, 0)
            if oid is not None:
                builder.insert(name, oid, mode)
            elif there is not None:
                builder.remove(name)
        return self._keep(builder.write) if len(builder) else None

    def _keep(self, write: Callable[[], pygit2.Oid]) -> pygit2.Oid:
        """Write an object and read it back; a damaged one that stood in the way is replaced; what
        is there is written once more: what no ref holds, `git repack -ad` takes away."""
        for _ in range(2):
            try:
                oid = write()
            except (ValueError, pygit2.GitError) as error:
                raise fault("cannot write an object", error) from None
            if self._unwritten.exists_cb(oid):
                return oid
            with suppress(KeyError, pygit2.GitError):
                kind, data = self._repo.odb.read(oid)
                self._unwritten.write_cb(oid, data, kind)
                return oid
            digits = str(oid)
            (self._objects / digits[:2] / digits[2:]).unlink(missing_ok=True)
        raise RepositoryFault(f"object {oid} is damaged and cannot be replaced", FSCK)
