"""The queue's lock: the process that empties the inbox, and what it does.

The kernel's `flock` is the truth, since it ends with its process however that dies.  What the file
says is for people only: nothing is ever decided by a pid.  No child that a daemon starts inherits
the descriptor.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock as Mutex
from typing import Literal

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from patchq.gate.errors import QueueLocked
from patchq.gate.git import files
from patchq.gate.queue.spool import disk_faults, encode

STOP_NOW = signal.SIGUSR1  # ends whoever empties the inbox at once
WorkStage = Literal["deciding", "asking", "checking"]
_MOST_TOLD = 5
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_ASKED_SECONDS = 0.05  # for as long as a process that only asks may hold it


class Activity(Struct, frozen=True):
    """The work on a batch, and the hook that it waits for.

    `since` is in seconds since the epoch.
    """

    batch: str
    stage: WorkStage
    since: float
    hook: str | None = None


class Owner(Struct, frozen=True):
    """The holder of the lock, by its own word, with its work.

    `since` is in seconds since the epoch.  Fields are None where the file was read in the moment
    before it was written.
    """

    pid: int | None = None
    host: str | None = None
    since: float | None = None
    doing: tuple[Activity, ...] = ()


class Lock:
    """An exclusive lock on a file, created if missing and never deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._owner = Owner()
        self._size = 0
        self._mutex = Mutex()  # hooks run in threads

    def acquire(self) -> None:
        """Take the lock at once; raises `QueueLocked` when another instance holds it."""
        if self._fd >= 0:
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        if not files.flock(fd, _ASKED_SECONDS):
            os.close(fd)
            holder = _read(self._path)
            raise QueueLocked(
                f"process {holder.pid} on {holder.host} works on this queue already",
                "stop it with `patchq stop`, or let it do the work",
            )
        self._fd = fd
        os.ftruncate(fd, 0)
        self._write(Owner(os.getpid(), socket.gethostname(), time.time()))

    def release(self) -> None:
        with self._mutex:
            if self._fd >= 0:
                os.ftruncate(self._fd, 0)
                os.close(self._fd)
                self._fd = -1

    @contextmanager
    def at(self, batch: str, stage: WorkStage, hook: str | None = None) -> Iterator[None]:
        """While the block runs, the owner shows that as its work."""
        now = Activity(batch, stage, time.time(), hook)
        with self._mutex:
            self._show((*self._owner.doing, now))
        try:
            yield
        finally:
            with self._mutex:
                self._show(tuple(one for one in self._owner.doing if one is not now))

    def _show(self, doing: tuple[Activity, ...]) -> None:
        with suppress(OSError):  # the work does not need it
            self._write(replace(self._owner, doing=doing))

    def _write(self, owner: Owner) -> None:
        self._owner, data = owner, encode(owner).ljust(self._size)
        os.pwrite(self._fd, data, 0)
        self._size = len(data)


@disk_faults()
def lock_owner(root: Path) -> Owner | None:
    """Return the process that empties the inbox of the queue under `root`; create nothing."""
    path = root / "lock"
    try:
        with files.opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            # A shared lock, so that two who only ask do not see each other.
            return None if files.flock(fd, shared=True) else _read(path)
    except FileNotFoundError:
        return None


def _read(path: Path) -> Owner:
    for _ in range(3):  # it may be written at this moment
        with suppress(OSError, MsgspecError):
            return json.decode(path.read_bytes(), type=Owner)
    return Owner()


def activities(root: Path) -> tuple[Activity, ...]:
    """Return the known work of the process that has the queue's lock."""
    owner = lock_owner(root)
    return owner.doing if owner else ()


def activity_text(doing: Sequence[Activity], *, batches: bool = False) -> str:
    """Return the work in words; with the `batches` where they are not known."""
    return ", ".join(
        f"{f'{one.batch} ' if batches else ''}{one.stage}{f' by {one.hook}' if one.hook else ''} "
        f"for {age(one.since)}"
        for one in doing[:_MOST_TOLD]
    )


def age(since: float) -> str:
    """Return the time since then in its largest unit of which there are two."""
    seconds = max(0, int(time.time() - since))
    size, unit = next((each for each in _UNITS if seconds >= 2 * each[0]), (1, "s"))
    return f"{seconds // size} {unit}"
