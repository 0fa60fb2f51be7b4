"""Looking at where patchq runs: what keeps it from working, what waits for a person, and which
promise is weaker here than it could be.

Each part yields findings, and none of them raises for what it finds.  Nothing is repaired here, and
no lock is taken; the files that are made to try out a file system are gone afterwards.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Literal

from msgspec import Struct

Level = Literal["fatal", "todo", "weaker", "ok"]


class Finding(Struct, frozen=True):
    """One thing that was looked at: `what` names it for programs, as in `queue.space`.

    `fatal`: patchq cannot work so; `todo`: a person has to do something; `weaker`: it works, and a
    promise holds less than elsewhere; each with its cure.  `ok`: nothing to do.
    """

    what: str
    level: Level
    message: str
    cure: str | None = None


def writable(error: OSError, path: Path, otherwise: str) -> str:
    """The cure for a place that could not be written."""
    if error.errno == errno.EROFS:
        while not path.is_mount():
            path = path.parent
        return f"mount -o remount,rw '{path}'"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room; `queue.retention_days` removes finished batches sooner"
    return otherwise
