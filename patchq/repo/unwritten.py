"""New objects, kept in memory until the batch that they are for is certain to land.

libgit2 writes to the object database's first backend, and this one stands first.  A refused batch
and a dry run so leave nothing in the repository, and a group of batches costs one pack instead of
hundreds of files.

They go to files in a directory of their own, which are flushed and then renamed to where git looks
for them.  So nobody ever sees an empty object or half a pack, whatever is killed or cut off, and
what is left behind has an own file that tells whose it was (`linklock`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pygit2

from patchq.linklock import LinkLock, leftovers, make_directory

MOST_LOOSE = 24
"""More objects at once than these are written as a pack."""
_SUFFIX = ".objects"


def clean(objects: Path) -> None:
    """Remove what killed writers left."""
    for own in leftovers(objects, _SUFFIX):
        keeps = (objects / "pack").glob("*.keep")
        own.lock = next((keep for keep in keeps if own.owns(keep)), None)
        shutil.rmtree(_scratch(own), ignore_errors=True)
        own.free()


class Unwritten(pygit2.OdbBackend):
    """An object database in memory.  libgit2 asks it before the files; it answers `KeyError` for
    what it does not have."""

    def __init__(self) -> None:
        super().__init__()
        self._objects: dict[pygit2.Oid, tuple[int, bytes]] = {}
        self._kept: list[LinkLock] = []

    def write_to(self, repo: pygit2.Repository, objects: Path, flush: Callable[[], None]) -> None:
        """Move everything to the repository's files, `objects` being their directory.

        `flush` is called once, to make the files durable before they get their names.  A pack is
        kept from `git repack` until the next call: no ref has its commits yet.  Raises OSError or
        `pygit2.GitError`, and keeps everything in memory, when that fails.
        """
        while self._kept:
            self._kept.pop().free()
        if not self._objects:
            flush()
            return
        own = LinkLock.write(objects, _SUFFIX, b"")
        self._kept.append(own)
        scratch = _scratch(own)
        try:
            scratch.mkdir()
            names = self._write(repo, scratch)
            flush()
            for name in names:
                if name.endswith(".pack"):
                    own.hold(objects / name.replace(".pack", ".keep"))
                make_directory((objects / name).parent)
                (scratch / name).replace(objects / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._objects.clear()

    def _write(self, repo: pygit2.Repository, scratch: Path) -> list[str]:
        """The files, relative to `scratch`, in the order in which they may be seen: none before
        what it refers to, as objects are made, and an index, by which packs are found, last."""
        if len(self._objects) > MOST_LOOSE:
            pack = pygit2.PackBuilder(repo)
            pack.set_threads(1)
            for oid in self._objects:
                pack.add(oid)
            (scratch / "pack").mkdir()
            pack.write(str(scratch / "pack"))
            return sorted((f"pack/{name}" for name in os.listdir(scratch / "pack")), reverse=True)
        files = pygit2.Odb(str(scratch))
        made = [str(files.write(kind, data)) for kind, data in self._objects.values()]
        return [f"{digits[:2]}/{digits[2:]}" for digits in made]

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


def _scratch(own: LinkLock) -> Path:
    return own.own.with_name(f"{own.own.name}.d")
