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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from patchq.gate.git import files
from patchq.gate.git.linklock import LinkLock, leftovers
from patchq.gate.git.objects import object_id, referred
from patchq.gate.git.pack import New, pack
from patchq.gate.git.sharing import make_directory

MOST_LOOSE = 24
"""More objects at once than these are written as a pack."""
MARKS = "info/patchq"
"""Below `objects/`: an empty file for each pack that patchq wrote, of its name (`tidying`)."""
_SUFFIX = ".objects"
_TRIES = 100


def clean(objects: Path) -> None:
    """Remove what killed writers left."""
    for own in leftovers(objects, _SUFFIX):
        own.find((objects / "pack").glob("*.keep"))
        drop(own)


class Unwritten:
    """New objects by their ids: kind and content."""

    def __init__(self) -> None:
        self._objects: dict[pygit2.Oid, tuple[int, bytes]] = {}
        self._origins: dict[str, str] = {}
        """What an object was made of, both in hex."""
        self._kept: list[LinkLock] = []

    def backend(self) -> pygit2.OdbBackend:
        """What a handle asks for them; it can be given to one only."""
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
        own = new_own(objects)
        self._kept.append(own)
        scratch = own.beside(".d")
        try:
            scratch.mkdir()
            names = self._write(objects, scratch)
            flush()
            for name in names:
                if name.endswith(".pack"):
                    own.hold(objects / name.replace(".pack", ".keep"))
                    mark(objects, Path(name).stem)
                publish(scratch / name, objects / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._objects.clear()
        self._origins.clear()

    def let_go(self) -> None:
        """Keep nothing from `git repack` any more: refs have what shall stay."""
        while self._kept:
            drop(self._kept.pop())

    def _write(self, objects: Path, scratch: Path) -> list[str]:
        """The files, relative to `scratch`, in the order in which they may be seen: none before
        what it refers to, as objects are made, and an index, by which packs are found, last.

        Beside a pack, too, what is loose already is replaced: a power cut may have left it empty.
        """
        many, loose = len(self._objects) > MOST_LOOSE, pygit2.Odb(str(scratch))
        names, there = [], frozenset(os.listdir(objects))
        for oid, content in self._objects.items():
            digits = str(oid)
            name = f"{digits[:2]}/{digits[2:]}"
            if not many or (digits[:2] in there and os.path.exists(f"{objects}/{name}")):
                loose.write(*content)
                names.append(name)
        return [*self._packed(scratch), *names] if many else names

    def _packed(self, scratch: Path) -> Iterator[str]:
        (scratch / "pack").mkdir()
        ids = ((str(oid), content) for oid, content in self._objects.items())
        news = {oid: New(*content, self._origins.get(oid)) for oid, content in ids}
        body, index = pack(news)
        for suffix, data in (("pack", body), ("idx", index)):
            name = f"pack/pack-{body[-20:].hex()}.{suffix}"
            files.write(scratch / name, data, mode=0o444)
            yield name

    def keep(self, kind: ObjectType, data: bytes, origin: str | None = None) -> str:
        """Have a new object, made of the one that `origin` (hex) names; its id in hex."""
        oid = object_id(kind, data)
        self._objects[pygit2.Oid(hex=oid)] = kind, data
        if origin is not None:
            self._origins[oid] = origin
        return oid

    def content(self, oid: str) -> bytes | None:
        """An object's bytes, if it is in memory: libgit2 would ask for them by way of C."""
        try:
            kept = self._objects.get(pygit2.Oid(hex=oid))
        except ValueError:  # no id
            return None
        return kept[1] if kept else None

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Forget what is made inside, when it is left."""
        known = len(self._objects)
        try:
            yield
        finally:
            for oid in list(self._objects)[known:]:
                del self._objects[oid]
                self._origins.pop(str(oid), None)

    def needed(self, roots: Iterable[str]) -> dict[str, tuple[int, bytes]]:
        """The objects in memory that the commits or trees `roots` are or need: kind and content by
        id (hex)."""
        front = [pygit2.Oid(hex=root) for root in roots]
        seen, found = set(front), {}
        while front:
            oid = front.pop()
            kept = self._objects.get(oid)
            if kept is None:
                continue
            found[str(oid)] = kept
            below = {pygit2.Oid(hex=oid) for oid in referred(*kept)} - seen
            seen |= below
            front += below
        return found


class _InMemory(pygit2.OdbBackend):
    """An object database in memory.  libgit2 asks it before the files, for an object's id, or the
    digits that somebody abbreviated one to; it answers `KeyError` for what it does not have."""

    def __init__(self, objects: dict[pygit2.Oid, tuple[int, bytes]]) -> None:
        super().__init__()
        self._objects = objects

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


def new_own(objects: Path) -> LinkLock:
    """The file that says whose the scratch directory beside it is."""
    return LinkLock.write(objects, _SUFFIX, b"")


def mark(objects: Path, name: str) -> None:
    """Mark a pack as one of patchq's, before it is there."""
    make_directory(objects / MARKS)
    (objects / MARKS / name).touch()


def publish(file: Path, place: Path) -> None:
    """Give a file its name; a `git gc` beside removes directories that are empty for a moment."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            make_directory(place.parent)
            file.replace(place)
            return
    raise FileNotFoundError(ENOENT, f"{place.parent} is removed again and again", str(place))


def drop(own: LinkLock) -> None:
    """Remove the own file, unless its directory is still there and says so to the next start."""
    shutil.rmtree(own.beside(".d"), ignore_errors=True)
    if own.beside(".d").exists():
        os.close(own.fd)
    else:
        own.free()
