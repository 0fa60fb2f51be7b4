"""What the queue asks of Linux beyond Python's `os`: a flush of one file system, a rename that
never overwrites, and whether anybody still has a file open for writing."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal

_libc = ctypes.CDLL(None, use_errno=True)
_RENAME_NOREPLACE = 1


def syncfs(fd: int) -> None:
    """Flush the file system that `fd` is on; OSError if anything could not be written."""
    if not hasattr(_libc, "syncfs"):
        os.sync()
    elif _libc.syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def rename_noreplace(directory: int, old: str, new: str) -> None:
    """Rename within a directory (a descriptor); FileExistsError when `new` is taken."""
    if hasattr(_libc, "renameat2"):
        old_name, new_name = os.fsencode(old), os.fsencode(new)
        if _libc.renameat2(directory, old_name, directory, new_name, _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code), new)
    os.link(old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(old, dir_fd=directory)


def being_written(fd: int) -> bool | None:
    """Whether the file behind `fd` (open for reading) is open for writing anywhere.

    A read lease is granted exactly when nobody writes.  None: leases cannot be had here (another
    user's file, a network file system, another system).
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        # Whoever opens the file for writing meanwhile breaks the lease, and the default signal
        # for that, SIGIO, would end this process; SIGURG does nothing.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
