"""Files as a crash leaves them: written whole or not at all, flushed at once, locked by a process.

A path may be relative to a `folder`, the descriptor of a directory, so no link leads it astray.

The umask says who else may use a file, widened as git's `core.sharedRepository` asks.  It is the
process's, so it is widened once, for libgit2 and for the programs that patchq starts as well.

Within git's own protocol, whoever creates `<file>.lock` may replace `<file>`.  A lock that a killed
process left blocks everybody, and nothing in it says whose it was.  So the lock is made by `link()`
from a file of our own, `GITDIR/patchq-<token>…`: as exclusive as creating it, and from then on the
shared inode proves whose it is.  The own file is flocked while its owner lives; the kernel takes
that back on any death, so no pid and no clock decides who is dead.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import math
import os
import random
import re
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from patchq.gate.errors import Busy, DiskFault

_LIBC = ctypes.CDLL(None, use_errno=True)
_RENAME_NOREPLACE = 1
_PAUSE_SECONDS = (0.002, 0.02)
# With less room, or fewer files that could be made, git may have failed for want of more.
_LEAST_BYTES, _LEAST = 128 << 10, 8
# Of mallopt(3); naming a size keeps glibc from raising it.
_MMAP_THRESHOLD, _LARGE_BYTES = -3, 128 << 10
_NONE = {"umask", "false", "no", "off", "0", ""}
_GROUP = {"group", "true", "yes", "on", "1"}
_ALL = {"all", "world", "everybody", "2"}
WAIT_SECONDS = 10.0  # for the owner of a lock file
_shared = False  # true once the umask is that of a shared repository
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


@contextmanager
def opened(
    path: str | Path, flags: int, folder: int | None = None, mode: int = 0o666
) -> Iterator[int]:
    """Open a file as a descriptor that no child inherits; umask narrows a new file's mode."""
    fd = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def write(
    path: str | Path,
    data: bytes,
    *,
    folder: int | None = None,
    mode: int = 0o666,
    grant: int = 0,
    flush: bool = False,
) -> None:
    """Write a file in place, for names that are not looked at yet.

    `flush` makes the content durable. umask narrows the mode, but for what `grant` gives."""
    with opened(path, _WRITE, folder, mode) as fd:
        write_all(fd, data)
        if grant:
            os.fchmod(fd, stat.S_IMODE(os.fstat(fd).st_mode) | grant)
        if flush:
            (os.fsync if grant else os.fdatasync)(fd)


def replace(
    path: str | Path,
    data: bytes,
    *,
    via: str | Path,
    folder: int | None = None,
    mode: int = 0o666,
    grant: int = 0,
    flush: bool = False,
) -> None:
    """Write or replace a file atomically.

    `via` is the temporary name, which a crash may leave, and no error does; `flush` makes the new
    content durable before it takes the old one's place.
    """
    try:
        write(via, data, folder=folder, mode=mode, grant=grant, flush=flush)
        os.rename(via, path, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(via, dir_fd=folder)
        raise


def save(path: Path, data: bytes) -> None:
    """Replace a file that people edit, or its link's target, as a whole.

    Its mode stays.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else 0
    via = path.with_name(f".{path.name}.patchq.tmp")
    replace(path, data, via=via, mode=kept or 0o666, grant=kept, flush=True)


def take_away(path: Path, *tops: Path) -> None:
    path.unlink()
    with suppress(OSError):  # raised by a folder that is not empty
        for folder in path.parents:
            if folder in tops:
                break
            folder.rmdir()


def exclude(commondir: Path, patterns: Iterable[str], *, remove: bool = False) -> None:
    """Add patterns to the repository's `info/exclude`, or take them out."""
    path = commondir / "info" / "exclude"
    lines = path.read_bytes().splitlines() if path.exists() else []
    given = [*map(os.fsencode, patterns)]
    kept = [line for line in lines if line not in given]
    wanted = kept if remove else [*lines, *(line for line in given if line not in lines)]
    if wanted != lines:
        save(path, b"".join(line + b"\n" for line in wanted))


def append(fd: int, data: bytes) -> None:
    """Write behind what the file has, all of it or nothing."""
    size, written = os.fstat(fd).st_size, 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        if os.fstat(fd).st_size == size + written:  # else another process wrote behind it
            os.ftruncate(fd, size)
        raise


@cache
def boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def shortage(place: Path) -> str:
    """Return the system's words for the file system's shortage, or ""."""
    try:
        now = os.statvfs(place)
    except OSError as error:
        return str(error.strerror)
    if now.f_flag & os.ST_RDONLY:
        return os.strerror(errno.EROFS)
    few = now.f_bavail * now.f_frsize < _LEAST_BYTES or (now.f_files and now.f_favail < _LEAST)
    return os.strerror(errno.ENOSPC) if few else ""


def rename_noreplace(folder: int, old: str, new: str) -> None:
    """Rename within a directory; FileExistsError when `new` is taken."""
    if hasattr(_LIBC, "renameat2"):
        old_name, new_name = os.fsencode(old), os.fsencode(new)
        if _LIBC.renameat2(folder, old_name, folder, new_name, _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code), new)
    os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.unlink(old, dir_fd=folder)


def syncfs(fd: int) -> None:
    """Flush the file system of `fd`; raise OSError if a write failed."""
    if not hasattr(_LIBC, "syncfs"):
        os.sync()
    elif _LIBC.syncfs(fd):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def barrier(*paths: Path) -> None:
    """Make everything on the file systems of these directories durable, git's objects included."""
    devices = set()
    for place in (place for path in paths for place in (path, path / "objects")):
        with suppress(FileNotFoundError):
            device = place.stat().st_dev
            if device not in devices:
                devices.add(device)
                with opened(place, os.O_RDONLY) as fd:
                    try:
                        syncfs(fd)
                    except OSError as error:
                        raise DiskFault(f"cannot flush {place}: {error.strerror}") from error


def attempts(seconds: float, cut: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turns of a loop that tries something again for so long, or until `cut`; one at least."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() < deadline and not cut():
        time.sleep(random.uniform(*_PAUSE_SECONDS))
        yield


def flock(fd: int, seconds: float = 0.0, *, shared: bool = False) -> bool:
    """Lock the open file until it is closed, or this process dies.

    Returns False if another process has it locked for so long. Shared locks only keep exclusive
    ones away."""
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    for _ in attempts(seconds):
        with suppress(BlockingIOError):
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
            return True
    return False


def being_written(fd: int) -> bool | None:
    """Return True if the file behind `fd` is open for writing anywhere.

    `fd` is open for reading.  A read lease is granted exactly when there is no writer.  None:
    leases cannot be had here (another user's file, a network file system, another system)."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Whoever opens the file for writing meanwhile breaks the lease, and the default signal
        # for that, SIGIO, would end this process; SIGURG does nothing.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)  # closing does not while a child has it, too
    return False


def give_back_memory() -> None:
    """Let the system have what was freed: objects that libgit2 forgot leave holes behind."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)


def keep_heap_small() -> None:
    """Have glibc return large freed pieces of memory to the system at once.

    By itself it begins to keep them once it has seen one, and small ones that stay make holes of
    them: a process that lives for long grows.
    """
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def widened(setting: str | None, umask: int) -> int:
    """Return the umask that `core.sharedRepository` asks for: a name, a boolean, or a mode."""
    word = (setting or "").lower()
    if word in _GROUP:
        return umask & ~0o070
    if word in _ALL:
        return umask & ~0o075
    mode = int(word, 8) if re.fullmatch(r"[0-7]+", word) else 0
    if word in _NONE or mode & 0o600 != 0o600:  # git itself refuses what it does not read
        return umask
    return 0o777 & ~(mode & 0o666 | (mode & 0o444) >> 2)


def share(setting: str | None) -> None:
    """Widen this process's umask as the repository's setting asks; safe to repeat."""
    global _shared
    _shared = (setting or "").lower() not in _NONE
    if _shared:
        os.umask(widened(setting, umask()))


def is_on() -> bool:
    return _shared


def umask() -> int:
    """Return this process's umask.  Setting it is the way to read it: call before threads start."""
    current = os.umask(0o077)
    os.umask(current)
    return current


def make_directory(path: Path) -> None:
    """Make the directory and its parents.

    In a shared repository they give their group on.
    """
    if path.is_dir():
        return
    make_directory(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
        if _shared:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_ISGID)


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
            if flock(fd, math.inf) and own.exists():
                break
            os.close(fd)  # taken for a dead owner's before it was flocked
        lock = cls(own, fd)
        try:
            write_all(fd, content)
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
        for _ in attempts(wait, cut):
            try:
                make_directory(lock.parent)  # git removes those that pack-refs emptied
                os.link(self.own, lock)
            except (FileExistsError, FileNotFoundError):
                continue
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                    raise
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

    def free(self) -> None:
        """Remove the files with what is beside them; what cannot be goes at the next start."""
        self.unlock()
        scratch = self.beside(".d")
        with suppress(OSError):  # whatever it served is done, and the own file goes last
            for suffix in (".new", ".new.lock"):
                self.beside(suffix).unlink(missing_ok=True)
            if scratch.exists():
                shutil.rmtree(scratch)
            self.own.unlink()
        os.close(self.fd)


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
        if flock(fd, deadline - time.monotonic()) and own.exists():
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
