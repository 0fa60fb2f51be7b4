"""A watch on a directory that nobody reads: it shows what the kernel kept for any other one.

The kernel gives every inotify instance a queue of the same length, and puts a last event behind
what filled it.  So a second watch, which asks for the same and is not read either, tells whether a
stopped daemon has lost events, without a look into the daemon.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

_HEAD = struct.Struct("iIII")
_MOVED_TO, _OVERFLOW = 0x80, 0x4000
_LIBC = ctypes.CDLL(None, use_errno=True)


def longest_queue() -> int:
    """How many events the kernel keeps for one instance."""
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


class Witness:
    """Watches what is renamed into a directory, from now on."""

    def __init__(self, directory: Path) -> None:
        self._fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or _LIBC.inotify_add_watch(self._fd, os.fsencode(directory), _MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify has no watch left", str(directory))

    def close(self) -> tuple[int, bool]:
        """The events that were kept, and whether some were lost."""
        kept, lost = 0, False
        try:
            while data := os.read(self._fd, 1 << 20):
                for mask in _masks(data):
                    kept += mask & _MOVED_TO != 0
                    lost |= mask & _OVERFLOW != 0
        except BlockingIOError:
            return kept, lost
        finally:
            os.close(self._fd)
        return kept, lost


def _masks(data: bytes) -> list[int]:
    masks, at = [], 0
    while at < len(data):
        _, mask, _, length = _HEAD.unpack_from(data, at)
        masks.append(mask)
        at += _HEAD.size + length
    return masks
