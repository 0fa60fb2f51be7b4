"""New objects: blobs, trees, commits.

Each is made in memory, whatever the repository has: an object that "exists already" may be one
that a power cut left empty, or one that no ref holds and `git repack -ad` takes away.  libgit2
would look through the packs' directory for each of them, besides.
"""

from __future__ import annotations

import pygit2
from pygit2.enums import ObjectType

from patchq.git.faults import fault
from patchq.git.identity import Identity
from patchq.git.objects import object_id
from patchq.git.unwritten import Unwritten
from patchq.model.errors import RepositoryFault


class Writer:
    """Makes objects, which stay in `unwritten`."""

    def __init__(self, repo: pygit2.Repository, unwritten: Unwritten) -> None:
        self._repo = repo
        self._unwritten = unwritten

    def commit(
        self, root: str, parent: str | None, message: str, author: Identity, committer: Identity
    ) -> str:
        if "\0" in message:
            raise RepositoryFault("a commit message cannot hold a NUL byte")
        tree = pygit2.Oid(hex=root)
        parents: list[str | pygit2.Oid] = [parent] if parent else []
        by, via = (pygit2.Signature(p.name, p.email, p.when, p.offset) for p in (author, committer))
        try:
            text = str(self._repo.create_commit_string(by, via, message, tree, parents))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise fault("cannot make a commit", error) from None
        return self._keep(ObjectType.COMMIT, text.encode())

    def blob(self, data: bytes) -> str:
        return self._keep(ObjectType.BLOB, data)

    def tree(self, data: bytes) -> str:
        return self._keep(ObjectType.TREE, data)

    def _keep(self, kind: ObjectType, data: bytes) -> str:
        oid = object_id(kind, data)
        self._unwritten.write_cb(pygit2.Oid(hex=oid), data, kind)
        return oid
