"""The register of the ids that were ever given, and of what is left of batches without files.

It is 256 files, `known/XX` by the digest of the id, so that no batch has a file of its own here,
and who looks for an id reads little.  Lines are added at the end, each whole by its checksum:

    CRC/ID/TOKEN                    the id is the claim's
    CRC/ID/STATE/TIME/OTHER/CODE    the files are gone: the last state, since when (in seconds, as
                                    hexadecimal digits), who stands for the batch, what refused it

The first is not needed beside the second.  So once a quarter of a file is of no use, it is written
anew without that, and replaced: each batch costs a few lines, however many there were before it.
Nothing is removed before what is left of it is durable.  A torn line ends with the next one.

An older patchq made a symbolic link `ids/ID -> TOKEN` for each id.  Whoever has the queue's lock
takes them over (`fold`).  As long as that directory is there, one may still be at work beside this
process, so ids are reserved by links, which both see.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from zlib import crc32

from msgspec import Struct

from patchq.core.model.names import MAX_ID_BYTES
from patchq.core.model.values import State
from patchq.gate.git import files
from patchq.gate.queue.spool import Folder, read_up_to, valid
from patchq.gate.report.schema import Report

KNOWN = "known"
LINKS = "ids"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
_HINTS = 10_000
_GIVEN, _GONE = 2, 5
"""How many fields a line has behind its checksum."""
_USELESS = 4
"""One line of so many may be of no use."""


class Past(Struct, frozen=True):
    """What is left of a batch whose files are gone.  `at` is in seconds since the epoch, `other` is
    the batch that stands for it, `code` the first error that refused it."""

    state: State
    at: int
    other: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, report: Report, at: float) -> Past:
        codes = (p.code for p in report.problems if p.severity == "error")
        return cls(report.state, int(at), report.duplicate_of, next(codes, None))

    def line(self, id: str) -> bytes:
        return _line(id, self.state, f"{self.at:x}", self.other or "", self.code or "")


def shard(id: str) -> str:
    """The file that knows the id."""
    return sha256(os.fsencode(id)).hexdigest()[:2]


def _line(*fields: str) -> bytes:
    text = os.fsencode("/".join(fields))
    return b"%08x/%s\n" % (crc32(text), text)


def _fields(line: bytes) -> list[str]:
    """What a line says; nothing where it is torn."""
    text = line[9:]
    return os.fsdecode(text).split("/") if line[:9] == b"%08x/" % crc32(text) else []


def _about(data: bytes, id: str) -> Iterator[list[str]]:
    """What the lines on the id say, the last one first; nothing for one that is damaged, which
    still tells that the id was given."""
    key = b"/%s/" % os.fsencode(id)
    at = data.rfind(key)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        if at - start == 8:
            end = data.find(b"\n", at)
            yield _fields(data[start : end if end >= 0 else len(data)])
        at = data.rfind(key, 0, at + 1)  # an id may be the name of a state


def _without_useless(data: bytes) -> bytes | None:
    """The lines that are still needed; None where nearly all of them are."""
    lines = [line for line in data.split(b"\n") if line]
    said = [_fields(line) for line in lines]
    gone = {fields[0]: number for number, fields in enumerate(said) if len(fields) == _GONE}
    kept = [
        line
        for number, (line, fields) in enumerate(zip(lines, said, strict=True))
        if (gone.get(fields[0], number) == number if fields else b"\0" not in line)
    ]
    if (len(lines) - len(kept)) * _USELESS < len(lines):
        return None
    return b"".join(line + b"\n" for line in kept)


class Register:
    """The register in `folder`, with the links of an older patchq in `links`; `is_known` says of an
    id whether the repository knows it."""

    def __init__(self, folder: Folder, links: Folder, is_known: Callable[[str], bool]) -> None:
        self._folder, self._links = folder, links
        self._is_known = is_known
        self._last: dict[str, int] = {}

    def close(self) -> None:
        self._folder.close()
        self._links.close()

    def reserve(self, token: str, wanted: str, *, again: bool) -> str:
        """The first free one of `wanted`, `wanted-2`, …, now the token's; `again` says that the
        token may have one already."""
        if not valid(wanted):
            raise ValueError(f"not an id: {wanted!r}")
        if again:
            for id in self._given(wanted):
                if self.token(id) == token:
                    return id
        number = self._last.get(wanted, 0)
        while True:
            number = self._free_from(wanted) if number == 1 else number + 1
            id = numbered(wanted, number)
            if not self._barred(id) and self._give(id, token):
                break
        if number > 1:
            if len(self._last) >= _HINTS:
                self._last.clear()
            self._last[wanted] = number
        return id

    def next(self, wanted: str) -> str:
        """The id that `reserve` would give now."""
        numbers = itertools.count(1 + len(list(self._given(wanted))))
        ids = (numbered(wanted, number) for number in numbers)
        return next(id for id in ids if not self._barred(id) and not self.knows(id))

    def token(self, id: str) -> str | None:
        """The claim that the id was given to, as long as its batch has files."""
        link = self._link(id)  # before the register, into which links go
        said = (fields[1] for fields in self._lines(id) if len(fields) == _GIVEN)
        return link or next(said, None)

    def past(self, id: str) -> Past | None:
        """What is left of a batch whose files are gone."""
        for fields in self._lines(id):
            if len(fields) == _GONE:
                _, state, at, other, code = fields
                return Past(state, int(at, 16), other or None, code or None)  # type: ignore[arg-type]
        return None

    def knows(self, id: str) -> bool:
        """Whether the id was ever given."""
        return self._link(id) is not None or next(self._lines(id), None) is not None

    def unknown(self, ids: Collection[str]) -> list[str]:
        """Those that were never given; reads the register once."""
        data = {name: self._folder.read(name) or b"" for name in self._folder.names()}
        there = (next(_about(data.get(shard(id), b""), id), None) is not None for id in ids)
        return [
            id for id, known in zip(ids, there, strict=True) if not known and not self._link(id)
        ]

    def restore(self, id: str, token: str = "restored") -> None:
        """Have the id be given, if it is not."""
        self._add({id: _line(id, token)})

    def bury(self, pasts: Mapping[str, Past], sync: Callable[[], None]) -> None:
        """Put down, durably, what is left of batches whose files are about to go; safe to repeat.
        `sync` makes durable what was written before it."""
        shards = self._add({id: past.line(id) for id, past in pasts.items()})
        try:
            shorter = {name: mark for name in shards if (mark := self._shorten(name))}
            sync()
            for name, mark in shorter.items():
                with self._opened(name) as fd:
                    if _mark(fd) == mark:  # else there is more now: the next time
                        self._folder.move(f"{name}.tmp", self._folder, name)
        finally:
            for name in shards:
                self._folder.remove(f"{name}.tmp")

    def fold(self, sync: Callable[[], None]) -> None:
        """Take over the links of an older patchq; the queue's lock is held."""
        with suppress(FileNotFoundError):
            links = {id: self._link(id) for id in self._links.names()}
            self._add({id: _line(id, token) for id, token in links.items() if token})
            sync()
            for id, token in links.items():
                if token:
                    self._links.remove(id)
            self._links.discard()

    def _give(self, id: str, token: str) -> bool:
        """Whether the id was free, and is the token's now."""
        with self._opened(shard(id)) as fd:
            data = _content(fd)
            if next(_about(data, id), None) is not None:
                return False
            try:
                os.symlink(token, id, dir_fd=self._links.fd)
            except FileNotFoundError:
                files.append(fd, _behind(data) + _line(id, token))
            except FileExistsError:  # whatever has the name
                return False
            return True

    def _add(self, lines: Mapping[str, bytes]) -> list[str]:
        """Add those lines on ids that are not the last ones on them; the files that they are in."""
        by_shard: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        for id, line in lines.items():
            by_shard[shard(id)][id] = line
        for name, added in by_shard.items():
            with self._opened(name) as fd:
                data = _content(fd)
                last = {id: next(_about(data, id), None) for id in added}
                new = b"".join(line for id, line in added.items() if last[id] != _fields(line[:-1]))
                if new:
                    files.append(fd, _behind(data) + new)
        return list(by_shard)

    def _shorten(self, name: str) -> tuple[int, int] | None:
        """Write a file without its useless lines beside it, if they are many; what it was made
        from."""
        with self._opened(name) as fd:
            shorter = _without_useless(_content(fd))
            if shorter is None:
                return None
            self._folder.write(f"{name}.tmp", shorter)
            return _mark(fd)

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """A file of the register, which nobody else changes meanwhile."""
        while True:
            folder = self._folder.fd
            with files.opened(name, _OPEN, folder) as fd:
                files.flock(fd, math.inf)
                if _stands(fd, name, folder):
                    self._folder.share(fd)
                    yield fd
                    return

    def _lines(self, id: str) -> Iterator[list[str]]:
        return _about(self._folder.read(shard(id)) or b"", id)

    def _link(self, id: str) -> str | None:
        """Where the link of an older patchq points to; what is no link takes the name as well."""
        try:
            return os.readlink(id, dir_fd=self._links.fd)
        except FileNotFoundError:
            return None
        except OSError:
            return ""

    def _given(self, wanted: str) -> Iterator[str]:
        """The ids made from `wanted` up to the first free one."""
        ids = (numbered(wanted, number) for number in itertools.count(1))
        return itertools.takewhile(lambda id: self._barred(id) or self.knows(id), ids)

    def _barred(self, id: str) -> bool:
        # `x.report` with the suffix `.json` would be the name of the report of `x`.
        return id.lower().endswith(".report") or self._is_known(id)

    def _free_from(self, wanted: str) -> int:
        """A number from which on none is used, found in a logarithmic number of looks; those below
        it may have gaps, which stay."""
        used, free = 1, 2
        while self.knows(numbered(wanted, free)):
            used, free = free, free * 2
        while free - used > 1:
            middle = (used + free) // 2
            if self.knows(numbered(wanted, middle)):
                used = middle
            else:
                free = middle
        return free


def _stands(fd: int, name: str, folder: int) -> bool:
    """Whether this is the file that others would open now."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), os.lstat(name, dir_fd=folder))
    return False


def _content(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    return read_up_to(fd, os.fstat(fd).st_size)


def _behind(data: bytes) -> bytes:
    """What a new line is to begin with, where the last one was torn."""
    return b"" if not data or data.endswith(b"\n") else b"\n"


def _mark(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_ino, status.st_size


def numbered(wanted: str, number: int) -> str:
    if number == 1:
        return wanted
    suffix = f"-{number}"
    room = MAX_ID_BYTES - len(suffix)
    return os.fsencode(wanted)[:room].decode("utf-8", "ignore") + suffix
