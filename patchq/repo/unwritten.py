"""New objects, kept in memory until the batch that they are for is certain to land.

libgit2 writes to the object database's first backend, and this one stands first.  A refused batch
and a dry run so leave nothing in the repository, and a group of batches costs one pack instead of
hundreds of files.
"""

from __future__ import annotations

from pathlib import Path

import pygit2

MOST_LOOSE = 24
"""More objects at once than these are written as a pack."""


class Unwritten(pygit2.OdbBackend):
    """An object database in memory.  libgit2 asks it before the files; it answers `KeyError` for
    what it does not have."""

    def __init__(self) -> None:
        super().__init__()
        self._objects: dict[pygit2.Oid, tuple[int, bytes]] = {}

    def write_to(self, repo: pygit2.Repository, objects: Path) -> None:
        """Move everything to the repository's files, `objects` being their directory; flushes
        nothing.  Raises `pygit2.GitError` and keeps everything when that fails."""
        if len(self._objects) > MOST_LOOSE:
            pack = pygit2.PackBuilder(repo)
            pack.set_threads(1)
            for oid in self._objects:
                pack.add(oid)
            pack.write()
        elif self._objects:
            files = pygit2.Odb(str(objects))
            for kind, data in self._objects.values():
                files.write(kind, data)
        self._objects.clear()

    # What libgit2 calls: an object's id, or the digits that somebody abbreviated one to.

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        self._objects[oid] = kind, data

    def read_cb(self, oid: pygit2.Oid) -> tuple[int, bytes]:
        return self._objects[oid]

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        kind, data = self._objects[oid]
        return kind, len(data)

    def read_prefix_cb(self, digits: str) -> tuple[int, bytes, pygit2.Oid]:
        oid = self.exists_prefix_cb(digits)
        return (*self._objects[oid], oid)

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        return oid in self._objects

    def exists_prefix_cb(self, digits: str) -> pygit2.Oid:
        """Nobody knows these ids yet, so nobody abbreviates them."""
        oid = pygit2.Oid(hex=digits) if len(digits) == 40 else None
        if oid not in self._objects:
            raise KeyError(digits)
        return oid

    def refresh_cb(self) -> None:
        """Nothing changes behind its back."""
