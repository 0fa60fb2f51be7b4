"""The queue lock: it belongs to whoever empties the inbox.

The kernel's `flock` is the truth, since it ends with its process however that dies.  What the file
says is for people only, who holds it or of what fault the last one ended: nothing is ever decided
by a pid.  No child that a daemon starts inherits the descriptor.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from patchq.gate.errors import Fault, QueueLocked
from patchq.gate.git.files import flock, opened
from patchq.gate.queue.spool import disk_faults, encode

_MOST_SAID = 16 << 10
_ASKED_SECONDS = 0.05  # for as long as a process that only asks may hold it


class Owner(Struct, frozen=True):
    """The holder of the lock, by its own word; `since` is in seconds since the epoch.

    Fields are None where the file was read in the moment before it was written.
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
    """An exclusive lock on a file, which is made when it is missing and never deleted."""

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

    @property
    def held(self) -> bool:
        return self._fd is not None

    def lost(self) -> bool:
        """Return true if the lock is held on a file that others would not lock any more."""
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
    """Return the fault that ended the last work on the queue, if no process works there since."""
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
