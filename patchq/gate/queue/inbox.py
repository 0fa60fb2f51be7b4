"""Entries of the inbox: their order, and their completeness.

Nothing in it is trusted: an entry may be a link, a pipe, a sparse file of a terabyte, or change
under our hands.  One scan feeds many claims, and the events that announce files are hints only.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from patchq.core.model.names import REQUEST
from patchq.core.model.values import Problem, Source
from patchq.gate.errors import DiskFault
from patchq.gate.git import files
from patchq.gate.git.files import being_written, opened, rename_noreplace
from patchq.gate.queue import Claim
from patchq.gate.queue.spool import Folder, read_up_to, tokens

IGNORED_SUFFIXES = (".tmp", ".part", "~")
# Names that one scan keeps, the oldest ones; the next scan finds those behind them.
SCAN_ENTRIES = 20_000
_FREE_NAMES = 9
_STEM_BYTES, _SUFFIX_BYTES = 180, 40
_COPY_TRIES = 5
_COPY_PAUSE_SECONDS = 0.05
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# Errors of opening an entry that became another one, or is leased.
CHANGED = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EAGAIN}

_NO_DIRECTORY = FileNotFoundError, NotADirectoryError

Mark = tuple[int, int, int, int]  # inode, size, mtime and ctime: what changes when a file does


def ignored(name: str) -> bool:
    return name.startswith(".") or name.endswith(IGNORED_SUFFIXES)


def mark(status: os.stat_result) -> Mark:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def replaced(inbox: Path) -> DiskFault | None:
    """Return the fault if something other than a directory is there."""
    try:
        mode = os.lstat(inbox).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return None
    return DiskFault(
        f"{inbox} is {_KINDS.get(stat.S_IFMT(mode), 'a file')}, not a directory, so no response "
        "is taken in",
        f"put the directory back, or make a new one: mv '{inbox}' '{inbox.parent.parent}/'; "
        f"mkdir '{inbox}'",
    )


class Inbox:
    """The entries of the inbox, oldest first."""

    def __init__(self, folder: Folder, settle_seconds: float) -> None:
        self.folder = folder
        self._settle_seconds = settle_seconds
        self._waiting: deque[str] = deque()
        self._unsettled: dict[str, tuple[Mark, float]] = {}

    def complete(self) -> Iterator[str]:
        """Yield the names of complete entries, from the last scan and a new one."""
        yield from self._drain()
        self._scan()
        yield from self._drain()

    def _drain(self) -> Iterator[str]:
        while self._waiting:
            name = self._waiting.popleft()
            if self._is_complete(name):
                self._unsettled.pop(name, None)
                yield name

    def depth(self) -> int:
        try:
            with os.scandir(self.folder.fd) as entries:
                return sum(not ignored(entry.name) for entry in entries)
        except _NO_DIRECTORY:
            return 0

    def unsettled(self) -> float | None:
        if not self._unsettled:
            return None
        first = min(since for _, since in self._unsettled.values())
        return max(0.01, first + self._settle_seconds - time.monotonic())

    def submit(self, data: bytes, name: str, *, flush: bool = False) -> str:
        """Add a response under the name, or a free one like it; return it.

        Nothing stays of a response that cannot be added.
        """
        inbox, token = self.folder.fd, tokens.next()
        temporary = f".{token}.tmp"
        try:
            files.write(temporary, data, folder=inbox, grant=self.folder.grant, flush=flush)
            for free in free_names(name, token):
                with contextlib.suppress(FileExistsError):
                    rename_noreplace(inbox, temporary, free)
                    return free
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=inbox)
            raise

    def _scan(self) -> None:
        ages: list[tuple[int, str]] = []
        try:
            with os.scandir(self.folder.fd) as entries:
                ages = heapq.nsmallest(SCAN_ENTRIES, filter(None, map(_age, entries)))
        except _NO_DIRECTORY:
            pass  # it is about to be made anew, or `replaced` says what is there
        self._waiting = deque(name for _, name in ages)
        names = set(self._waiting) if self._unsettled else ()
        self._unsettled = {k: seen for k, seen in self._unsettled.items() if k in names}

    def _is_complete(self, name: str) -> bool:
        status = self.folder.status(name)
        if status is None:
            return False
        if not stat.S_ISREG(status.st_mode):
            return True
        if status.st_size == 0 or status.st_nlink > 1:
            return self._settled(name, status)
        written: bool | None
        try:
            with opened(name, OPEN, self.folder.fd) as fd:
                written = being_written(fd)
        except PermissionError:
            written = None
        except OSError as error:
            if error.errno not in CHANGED:
                raise
            written = True
        if written:
            self._unsettled[name] = (mark(status), time.monotonic())
            return False
        return written is False or self._settled(name, status)

    def _settled(self, name: str, status: os.stat_result) -> bool:
        now = time.monotonic()
        seen, since = self._unsettled.get(name, (None, now))
        if seen != mark(status):
            since = now
            self._unsettled[name] = (mark(status), now)
        return now - since >= self._settle_seconds


def _age(entry: os.DirEntry[str]) -> tuple[int, str] | None:
    if ignored(entry.name):
        return None
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns, entry.name
    except FileNotFoundError:
        return None


def free_names(name: str, token: str) -> Iterator[str]:
    """Yield names to try for a response, of which the last is free.

    The inbox looks at all of them.
    """
    plain = name.replace("/", "_").replace("\0", "_").lstrip(".") or "response"
    if ignored(plain):
        plain += ".txt"
    stem, dot, suffix = plain.rpartition(".") if "." in plain else (plain, "", "")
    if plain.endswith(REQUEST):
        stem, dot, suffix = plain.removesuffix(REQUEST), "", REQUEST
    if len(os.fsencode(suffix)) > _SUFFIX_BYTES:
        stem, suffix = plain, "txt"
    short = os.fsdecode(os.fsencode(stem)[:_STEM_BYTES])
    yield f"{short}{dot}{suffix}"
    for number in range(2, _FREE_NAMES + 1):
        yield f"{short}-{number}{dot}{suffix}"
    yield f"{short}-{token}{dot}{suffix}"


Snapshot = tuple[bytes, int, Problem | None]  # bytes, the size that is claimed, why none are read


def snapshot(folder: int, name: str, limit: int) -> Snapshot:
    """Read at most `limit` bytes of an entry taken out of the inbox.

    They are all of one moment.  A source that changes meanwhile is read again, a few times.  Raises
    FileNotFoundError when there is none.
    """
    for attempt in range(_COPY_TRIES):
        if attempt:
            time.sleep(_COPY_PAUSE_SECONDS)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
            problem = Problem(
                "response.not_text",
                f"the entry is {kind}, not a file; it was not opened",
                "write the response itself into the inbox, as a plain file",
            )
            return b"", status.st_size, problem
        if status.st_nlink > 1 and status.st_uid != os.geteuid():
            return b"", status.st_size, _FOREIGN
        if status.st_size > limit:
            return b"", status.st_size, too_large(status.st_size, limit)
        try:
            with opened(name, OPEN, folder) as fd:
                data = read_up_to(fd, limit + 1)
                whole = mark(os.fstat(fd)) == mark(status) and len(data) == status.st_size
        except PermissionError:
            return b"", status.st_size, _UNREADABLE
        except OSError as error:
            if error.errno not in CHANGED:
                raise
            continue
        if whole:
            return data, len(data), None
    return b"", status.st_size, _RESTLESS


def claim_of(
    token: str, name: str, data: bytes, size: int, problem: Problem | None = None, **more: Any
) -> Claim:
    """Return the claim of a response, or of a request without an answer."""
    source = Source(name, sha256(data).hexdigest(), size)
    asks = name.endswith(REQUEST) and not problem and "generation" not in more
    return Claim(token, source, data, problem, **{"request": asks, **more})


def too_large(size: int, limit: int) -> Problem:
    """Return the problem of a response of that many bytes."""
    return Problem(
        "response.too_large",
        f"the response has {size} bytes; `limits.response_bytes` allows {limit}",
        "send the changes in several responses, or quote less of each file",
    )


_FOREIGN = Problem(
    "response.incomplete",
    "the file has another name outside of the inbox and belongs to another user, so it may be "
    "changed at any time; it was not read",
    "write a new file into the inbox, or remove the other name",
)
_UNREADABLE = Problem(
    "response.incomplete",
    "the daemon's user may not read the file",
    "make the file readable for the daemon's user before it enters the inbox",
)
_RESTLESS = Problem(
    "response.incomplete",
    "the file was changed again and again while it was read",
    "write the response under a name that ends in `.tmp`, then rename it",
)
