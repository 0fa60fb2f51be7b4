"""What a queue keeps of finished batches beside their reports: when each ended, and in which order.

Removing one takes the report last.  Who dies on the way leaves a batch that is as old as before,
and is removed the next time.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from patchq.queue.spool import Folder

VERDICTS = "verdicts"
_TIME_DIGITS = 16
_NANO = 1_000_000_000


def ended(folders: Sequence[Folder], report: str, token: str | None) -> float | None:
    """Seconds since the epoch at which the report (a file name) was last written; None if it is in
    none of the folders.

    A copy of the queue may have lost the files' times; the claim's token tells the time before
    which there was no verdict, so a batch may seem younger than it is, and never older.
    """
    for folder in folders:
        if status := folder.status(report):
            return max(status.st_mtime, claimed(token) or 0.0)
    return None


def claimed(token: str | None) -> float | None:
    """Seconds since the epoch at which the claim with this token was taken."""
    try:
        return int((token or "")[:_TIME_DIGITS], 16) / _NANO
    except ValueError:
        return None


def remove(folder: Folder, *names: str) -> None:
    """Remove files in this order; a response may be a directory, as whoever dropped it left it."""
    for name in names:
        status = folder.status(name)
        if status and stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=folder.fd)
        elif status:
            folder.remove(name)


def remove_outlived(active: Folder, public: Sequence[Folder]) -> None:
    """Remove the reports of held batches whose verdict came right before a crash."""
    for name in active.names():
        if name.endswith(".report.json") and any(
            os.access(name, os.F_OK, dir_fd=folder.fd) for folder in public
        ):
            active.remove(name.removesuffix("json") + "md")
            active.remove(name)


def verdicts(root: Path, start: int = 0) -> tuple[list[str], int]:
    """The ids of the verdicts since a place in the register, in their order, and the place behind
    the last of them."""
    try:
        with (root / VERDICTS).open("rb") as file:
            file.seek(start)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1]
    lines = (line.decode("utf-8", "replace") for line in whole.split(b"\n") if b"\0" not in line)
    return [line for line in lines if line], start + len(whole)
