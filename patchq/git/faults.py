"""What libgit2 raises, as faults that say what to do."""

from __future__ import annotations

import os
from errno import EDQUOT, EIO, EMFILE, ENOSPC, EROFS

from patchq.model.errors import DiskFault, Fault, RepositoryFault

FSCK = "run `git fsck --full` and restore what it names from another clone"
_DISK = tuple(map(os.strerror, (ENOSPC, EDQUOT, EIO, EROFS, EMFILE)))


def fault(what: str, error: Exception) -> Fault:
    disk = next((words for words in _DISK if words in str(error)), None)
    return DiskFault(f"{what}: {disk}") if disk else RepositoryFault(f"{what}: {error}", FSCK)
