"""A lock file that proves its owner, within git's own protocol of `<file>.lock`.

Whoever creates `<file>.lock` may replace `<file>`.  A lock that a killed process left blocks
everybody, and nothing in it says whose it was.  So the lock is made by `link()` from a file of our
own, `GITDIR/patchq-<token>…`: as exclusive as creating it, and from then on the shared inode
proves whose it is.  The own file is flocked while its owner lives; the kernel takes that back on
any death, so no pid and no clock decides who is dead.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from patchq.gate.errors import Busy, DiskFault
from patchq.gate.git import files

WAIT_SECONDS = 10.0


@dataclass
class LockFile:
    """A file at `own`, open as `fd`, to which the lock file is linked."""

    own: Path
    fd: int
    lock: Path | None = None

    @classmethod
    def write(cls, directory: Path, suffix: str, content: bytes) -> LockFile:
        """Write a new file `patchq-<token><suffix>` with `content`, not linked yet."""
        while True:
            own = directory / f"patchq-{secrets.token_hex(8)}{suffix}"
            fd = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            if files.flock(fd, math.inf) and own.exists():
                break
            os.close(fd)  # taken for a dead owner's before it was flocked
        lock = cls(own, fd)
        try:
            files.write_all(fd, content)
        except OSError:
            lock.free()
            raise
        return lock

    def flush(self) -> None:
        os.fsync(self.fd)

    def hold(
        self, lock: Path, wait: float = WAIT_SECONDS, cut: Callable[[], bool] = lambda: False
    ) -> None:
        """Become the owner of `lock`.

        Raises `Busy` if another process is after `wait` seconds, or once `cut` says so."""
        for _ in files.attempts(wait, cut):
            try:
                files.make_directory(lock.parent)  # git removes those that pack-refs emptied
                os.link(self.own, lock)
            except (FileExistsError, FileNotFoundError):
                continue
            except OSError as error:
                raise DiskFault(
                    f"cannot make the hard link {lock}: {error.strerror}",
                    "patchq needs a file system with hard links for the git directory",
                ) from None
            self.lock = lock
            return
        raise Busy(*_held_by_others(lock))

    def find(self, places: Iterable[Path]) -> Path | None:
        """Return the place of a link to the own file.

        So a dead owner's lock is found.
        """
        for place in places:
            with suppress(FileNotFoundError):
                if os.path.samestat(place.lstat(), os.fstat(self.fd)):
                    self.lock = place
        return self.lock

    def beside(self, suffix: str) -> Path:
        return self.own.with_name(self.own.name + suffix)

    def publish(self, path: Path) -> None:
        """Rename the lock to `path`."""
        assert self.lock is not None
        os.rename(self.lock, path)
        self.lock = None

    def unlock(self) -> None:
        if self.lock is not None:
            self.lock.unlink(missing_ok=True)
            self.lock = None

    def release(self) -> None:
        """Unlock, and leave the own file as a dead owner's."""
        self.unlock()
        os.close(self.fd)

    def free(self) -> None:
        self.unlock()
        self.own.unlink(missing_ok=True)
        self.release()


def leftovers(directory: Path, suffix: str, wait: float = 0.0) -> Iterator[LockFile]:
    """Yield the files of owners that are dead, or die within `wait` seconds.

    Each is now the caller's, to be freed.
    """
    deadline = time.monotonic() + wait
    for own in sorted(directory.glob(f"patchq-*{suffix}")):
        try:
            fd = os.open(own, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if files.flock(fd, deadline - time.monotonic()) and own.exists():
            yield LockFile(own, fd)
        else:
            os.close(fd)


def _held_by_others(lock: Path) -> tuple[str, str]:
    try:
        age = max(0, round(time.time() - lock.stat().st_mtime))
    except OSError:
        return f"{lock} was held by other processes in turn", "it is tried again"
    return (
        f"{lock} is held by another process since {age} s",
        f"it is tried again; if no git process runs in this repository: rm '{lock}'",
    )
