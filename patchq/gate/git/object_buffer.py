"""New objects, kept in memory until their batch is certain to land.

libgit2 writes to the object database's first backend, and this one comes first.  A refused batch
and a dry run so leave nothing in the repository, and a group of batches costs one pack instead of
hundreds of files.

They go to files in a directory of their own, which are flushed and then renamed to where git looks
for them.  So an empty object or half a pack is never seen, whatever is killed or cut off, and
what is left behind has an own file that tells whose it was (`files.LockFile`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from patchq.gate.git.command import QUIET, Git, plain_environment
from patchq.gate.git.files import LockFile, leftovers, make_directory
from patchq.gate.git.objects import object_id, referred

MOST_LOOSE = 24  # more objects at once than these are written as a pack
_SUFFIX = ".objects"
_QUICKLY = 1  # zlib's level
_TRIES = 100  # a `git gc` beside removes directories that are empty for a moment


def clean(objects: Path) -> None:
    for own in leftovers(objects, _SUFFIX):
        own.find((objects / "pack").glob("*.keep"))
        own.free()


def write_loose(
    objects: Path, new: Iterable[tuple[int, bytes]], *, flush: bool = False
) -> list[str]:
    """Write objects into files of their own below the directory; return their ids.

    The directory's alternates do not count: one of theirs may be empty since a power cut.
    """
    odb = pygit2.Odb()
    odb.add_backend(pygit2.OdbBackendLoose(str(objects), -1, flush), 1)
    return [str(odb.write(kind, data)) for kind, data in new]


def _pack(objects: Collection[tuple[int, bytes]]) -> bytes:
    """Return the objects as a pack, each of them whole (`git help format-pack`)."""
    parts = [struct.pack(">4sII", b"PACK", 2, len(objects))]
    for kind, data in objects:
        byte, left, head = kind << 4 | len(data) & 15, len(data) >> 4, bytearray()
        while left:
            head.append(byte | 128)
            byte, left = left & 127, left >> 7
        head.append(byte)
        # To set up zlib's largest window takes ten times as long as to compress a commit.
        window = min(max(len(data).bit_length(), 9), zlib.MAX_WBITS)
        deflater = zlib.compressobj(_QUICKLY, zlib.DEFLATED, window)
        parts += bytes(head), deflater.compress(data), deflater.flush()
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return b"".join((*parts, digest.digest()))


def _index(objects: Path, scratch: Path, pack: bytes) -> None:
    """Have git check a pack and write it below `scratch`, with its index."""
    places = {"GIT_DIR": str(objects.parent), "GIT_OBJECT_DIRECTORY": str(scratch)}
    git = Git(plain_environment(**places), (*QUIET, "-c", "core.fsync=none"), place=objects)
    git.output("index-pack", "--stdin", stdin=pack)


class ObjectBuffer:
    """New objects by their ids in hex: kind and content."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[int, bytes]] = {}
        self._kept: list[LockFile] = []

    def backend(self) -> pygit2.OdbBackend:
        return _InMemory(self._objects)

    def write_to(self, objects: Path, flush: Callable[[], None]) -> None:
        """Move everything to the repository's files, `objects` being their directory.

        `flush` is called once, to make the files durable before they get their names.  A pack is
        kept from `git repack` until the next call: no ref has its commits yet.  Raises OSError or
        `pygit2.GitError`, and keeps everything in memory, when that fails.
        """
        self.let_go()
        if not self._objects:
            flush()
            return
        own = LockFile.write(objects, _SUFFIX, b"")
        self._kept.append(own)
        scratch = own.beside(".d")
        try:
            (scratch / "pack").mkdir(parents=True)
            names = self._write(objects, scratch)
            flush()
            for name in names:
                if name.endswith(".pack"):
                    own.hold(objects / name.replace(".pack", ".keep"))
                _publish(scratch / name, objects / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._objects.clear()

    def let_go(self) -> None:
        """Keep nothing from `git repack` any more: refs have what shall stay."""
        while self._kept:
            self._kept.pop().free()

    def _write(self, objects: Path, scratch: Path) -> list[str]:
        """Write the objects below `scratch`, and return the files in publishing order.

        The paths are relative to `scratch`.  No file comes before what it refers to, as objects are
        made, and a pack before its index, by which it is found.  Beside a pack, too, what is loose
        already is replaced: a power cut may have left it empty.
        """
        many, there = len(self._objects) > MOST_LOOSE, frozenset(os.listdir(objects))
        places = {f"{oid[:2]}/{oid[2:]}": content for oid, content in self._objects.items()}
        loose = {
            name: content
            for name, content in places.items()
            if not many or (name[:2] in there and os.path.exists(f"{objects}/{name}"))
        }
        write_loose(scratch, loose.values())
        names = [*loose]
        if many:
            _index(objects, scratch, _pack(self._objects.values()))
            files = sorted((scratch / "pack").glob("pack-*"), reverse=True)  # found by its index
            names = [*(f"pack/{file.name}" for file in files), *names]
        return names

    def keep(self, kind: ObjectType, data: bytes) -> str:
        """Have a new object; return its id in hex."""
        oid = object_id(kind, data)
        self._objects[oid] = kind, data
        return oid

    def content(self, oid: str) -> bytes | None:
        return self._objects.get(oid, (0, None))[1]

    @contextmanager
    def tentative(self) -> Iterator[None]:
        known = len(self._objects)
        try:
            yield
        finally:
            for oid in list(self._objects)[known:]:
                del self._objects[oid]

    def needed(self, roots: Iterable[str]) -> dict[str, tuple[int, bytes]]:
        """Return the objects in memory that the roots need, by their ids.

        `roots` are commits or trees.
        """
        front, found = list(roots), dict[str, tuple[int, bytes]]()
        while front:
            oid = front.pop()
            if oid in self._objects and oid not in found:
                found[oid] = self._objects[oid]
                front += referred(*found[oid])
        return found


class _InMemory(pygit2.OdbBackend):
    """An object database in memory, which libgit2 asks before the files.

    It answers `KeyError` for missing objects. New ids are not abbreviated."""

    def __init__(self, objects: dict[str, tuple[int, bytes]]) -> None:
        super().__init__()
        self._objects = objects

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        self._objects[str(oid)] = kind, data

    def read_cb(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        return self._objects[str(oid)]

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        return self.read_cb(oid)[0], len(self.read_cb(oid)[1])

    def read_prefix_cb(self, digits: str) -> tuple[int, bytes, pygit2.Oid]:
        return (*self.read_cb(digits), pygit2.Oid(hex=digits))

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        return str(oid) in self._objects

    def exists_prefix_cb(self, digits: str) -> pygit2.Oid:
        return self.read_prefix_cb(digits)[2]

    def refresh_cb(self) -> None:
        """Nothing changes behind its back."""


def _publish(file: Path, place: Path) -> None:
    for left in reversed(range(_TRIES)):
        try:
            make_directory(place.parent)
            file.replace(place)
            return
        except FileNotFoundError:
            if not left:
                raise
