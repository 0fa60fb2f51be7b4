"""Room for the way back, taken before the way there is begun.

Who runs out of room half-way needs some to undo what it did: new files, a new index, descriptors
for a git that does it.  So these are taken first, by files without a name that no crash leaves, and
given back when they are needed.  Where they cannot be had, nothing was begun.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from errno import EINVAL, EOPNOTSUPP
from pathlib import Path

from patchq.gate.errors import DiskFault

_DESCRIPTORS = 12  # needed to start a process and to talk to it


def reserve(sizes: Mapping[Path, int]) -> ExitStack:
    """Take so many bytes on the file system of each of the directories, a file that can be made
    there, and descriptors, until the answer is closed.  `DiskFault` if they cannot be had."""
    place = Path()
    with ExitStack() as kept:
        try:
            for place, size in sizes.items():
                file = kept.enter_context(tempfile.TemporaryFile(dir=place, prefix="patchq-"))
                try:
                    os.posix_fallocate(file.fileno(), 0, max(1, size))
                except OSError as error:
                    if error.errno not in (EINVAL, EOPNOTSUPP):  # not on every file system
                        raise
            for _ in range(_DESCRIPTORS):
                kept.callback(os.close, os.open(place, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise DiskFault(
                f"there is no room to work in {place}, so nothing was begun: {error.strerror}",
                "make room, then start patchq again; nothing was lost",
            ) from error
        return kept.pop_all()
