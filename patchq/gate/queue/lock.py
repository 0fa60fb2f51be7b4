"""The owner of the inbox, and the progress of responses without a verdict.

The queue's lock belongs to whoever empties the inbox.  The kernel's `flock` is the truth, since it
ends with its process however that dies.  What the file says is for people only, who holds it or of
what fault the last one ended: nothing is ever decided by a pid.  No child that a daemon starts
inherits the descriptor.

An entry of the inbox waits, a claim in the store is in hand or held.  What is done with those in
hand, whoever empties the inbox says in one small file, by one write for each step; readers believe
it as long as that process has the queue's lock.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import filterfalse
from pathlib import Path, PurePath
from threading import Lock as Mutex
from typing import Any, Literal

from msgspec import MsgspecError, Struct, ValidationError, convert
from msgspec.json import decode

from patchq.core.model.names import REQUEST, batch_id, response_name
from patchq.gate.errors import Fault, QueueLocked
from patchq.gate.git.files import flock, opened
from patchq.gate.queue import spool
from patchq.gate.queue.inbox import ignored
from patchq.gate.queue.spool import disk_faults, encode

HAND = "hand"
STOP_NOW = signal.SIGUSR1  # ends whoever empties the inbox at once
WorkStage = Literal["deciding", "asking", "checking"]
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_HEADER_BYTES = 4096
_MOST_TOLD = 5
_MOST_OPENED = 200  # files of the inbox that are looked into for the id that they give themselves
_ID = re.compile(rb"^id:[ \t]*([\"']?)(.*?)\1[ \t]*\r?$", re.MULTILINE)
_MOST_SAID = 16 << 10
_ASKED_SECONDS = 0.05  # for as long as a process that only asks may hold it


class Owner(Struct, frozen=True):
    """The holder of the lock, by its own word.

    `since` is in seconds since the epoch.  Fields are None where the file was read in the moment
    before it was written.
    """

    pid: int | None = None
    host: str | None = None
    since: float | None = None


class Ended(Struct, frozen=True):
    """The fault that ended the last holder; `at` is in seconds since the epoch."""

    at: float
    code: str
    message: str
    hint: str | None


class Lock:
    """An exclusive lock on a file, created if missing and never deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock at once; raises `QueueLocked` when another instance holds it."""
        if self._fd is not None:
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            if not flock(fd, _ASKED_SECONDS):
                holder = _read(self._path)
                who = f"process {holder.pid} on {holder.host}" if holder.pid else "another process"
                raise QueueLocked(
                    f"{who} works on this queue already",
                    "stop it with `patchq stop`, or let it do the work",
                )
            os.ftruncate(fd, 0)
            owner = Owner(os.getpid(), socket.gethostname(), time.time())
            os.pwrite(fd, encode(owner), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def lost(self) -> bool:
        """Return True if the lock is held on a removed or replaced file.

        Others would not lock that file any more.
        """
        try:
            return self._fd is not None and not os.path.samestat(
                os.fstat(self._fd), os.lstat(self._path)
            )
        except FileNotFoundError:
            return True

    def release(self, fault: Fault | None = None) -> None:
        """Give it up; for `fault`, if that is what ends the work."""
        if self._fd is None:
            return
        try:
            # In place, and what was there stays until then: a full disk has no other room.
            words = b""
            if fault is not None:
                message = " ".join(fault.message.split())[:1000]
                words = encode(Ended(time.time(), fault.code, message, fault.hint))
            with suppress(OSError):
                os.pwrite(self._fd, words, 0)
            os.ftruncate(self._fd, len(words))
        finally:
            os.close(self._fd)
            self._fd = None


@disk_faults
def lock_owner(root: Path) -> Owner | None:
    """Return the process that empties the inbox of the queue under `root`; create nothing."""
    path = root / "lock"
    try:
        with opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            # A shared lock, so that two who only ask do not see each other.
            return None if flock(fd, shared=True) else _read(path)
    except FileNotFoundError:
        return None


def last_words(root: Path) -> Ended | None:
    """Return the fault that ended the last work on the queue, or None.

    It is None, too, if a process has worked there since.
    """
    with (
        suppress(OSError, MsgspecError),
        opened(root / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd,
    ):
        return decode(os.read(fd, _MOST_SAID), type=Ended)
    return None


def _read(path: Path) -> Owner:
    try:
        return decode(path.read_bytes(), type=Owner)
    except (OSError, MsgspecError):
        return Owner()


# ---------------------------------------------------------------- what is done


class Activity(Struct, frozen=True):
    """The work on a batch, and the hook that it waits for.

    `since` is in seconds since the epoch.
    """

    batch: str
    stage: WorkStage
    since: float
    hook: str | None = None


class _Work(Struct):
    pid: int
    doing: list[Activity]


@dataclass
class Hand:
    """The work of this process, the lock's holder, in one small file.

    A file that cannot be written is left out, since the work does not need it.
    """

    root: Path
    _doing: dict[int, Activity] = field(default_factory=dict)
    _lock: Mutex = field(default_factory=Mutex)
    _fd: int | None = None
    _size: int = 0
    _count: int = 0

    @contextmanager
    def at(self, batch: str, stage: WorkStage, hook: str | None = None) -> Iterator[None]:
        """While the block runs, that is what is done with the batch."""
        with self._lock:
            self._count = key = self._count + 1
            self._doing[key] = Activity(batch, stage, time.time(), hook)
            self._say()
        try:
            yield
        finally:
            with self._lock:
                del self._doing[key]
                if hook is not None:  # nothing else is believed of a batch that has its verdict
                    self._say()

    def _say(self) -> None:
        data = encode(_Work(os.getpid(), list(self._doing.values())))
        with suppress(OSError):
            if self._fd is None:
                self._fd = os.open(self.root / HAND, _OPEN, 0o666)
            os.pwrite(self._fd, data.ljust(self._size), 0)
            self._size = max(self._size, len(data))


class Pending(Struct, frozen=True):
    """A response without a verdict, in the inbox or in hand.

    `id` is the one that it will get, as far as that is known.  `doing` is the work on it.
    """

    id: str
    name: str
    place: Literal["inbox", "hand"]
    since: float
    doing: tuple[Activity, ...] = ()

    @property
    def state(self) -> str:
        return "waiting" if self.place == "inbox" else "claimed"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "source": {"name": self.name},
            "since": self.since,
            "doing": [
                {"stage": one.stage, "hook": one.hook, "since": one.since} for one in self.doing
            ],
        }

    def summary(self) -> str:
        """Return the state in words that follow the id."""
        now = time.time()
        if self.place == "inbox":
            return f"in the inbox for {_long(now - self.since)}"
        if not self.doing:
            return f"in hand for {_long(now - self.since)}"
        return f"in hand: {activity_text(self.doing)}"


def activity_text(doing: Sequence[Activity], *, batches: bool = False) -> str:
    """Return the work in words; with the `batches` where they are not known."""
    now = time.time()
    return ", ".join(
        f"{f'{one.batch} ' if batches else ''}{one.stage}{f' by {one.hook}' if one.hook else ''} "
        f"for {_long(now - one.since)}"
        for one in doing[:_MOST_TOLD]
    )


def _long(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def stem_id(name: str) -> str:
    """Return the default id of a response, from its file's name."""
    return batch_id(PurePath(response_name(name)).stem)


def activities(root: Path) -> list[Activity]:
    """Return the known work of the process that has the queue's lock."""
    owner = lock_owner(root)
    if owner is None:
        return []
    for _ in range(3):  # it may be written at this moment
        with suppress(OSError, ValidationError):
            work = convert(spool.decode((root / HAND).read_bytes()), _Work)
            return work.doing if work.pid == owner.pid else []
    return []


def waiting(root: Path, id: str) -> Pending | None:
    """Return the response in the inbox that will ask for the id."""
    looked_into = 0
    inbox = root / "inbox"
    names = sorted(os.listdir(inbox)) if inbox.is_dir() else ()
    for name in filterfalse(ignored, names):
        path = inbox / name
        own = stem_id(name) == id
        if not own and looked_into < _MOST_OPENED:
            looked_into += 1
            own = own_id(head(path)) == id
        if own:
            with suppress(OSError):
                return Pending(id, name, "inbox", path.lstat().st_mtime)
    return None


def claimed(id: str, token: str, name: str, doing: Sequence[Activity]) -> Pending:
    """Return what is known of a response in hand."""
    names = (id, stem_id(name))
    own = tuple(one for one in doing if one.batch in names)
    since = spool.claimed(token) or 0.0
    if not own and name.endswith(REQUEST):
        own = (Activity(id, "asking", since),)
    return Pending(id, name, "hand", since, own)


def head(path: Path) -> bytes:
    """Return the first bytes of a response, none if it cannot be read."""
    with suppress(OSError), opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
        return os.read(fd, _HEADER_BYTES)
    return b""


def own_id(data: bytes) -> str | None:
    """Return the id in a response's front matter, or None.

    Only the first bytes are searched.
    """
    opening, _, rest = data[:_HEADER_BYTES].partition(b"\n")
    found = _ID.search(rest.partition(b"\n---")[0]) if opening.rstrip() == b"---" else None
    return batch_id(found[2].decode("utf-8", "replace")) if found else None
