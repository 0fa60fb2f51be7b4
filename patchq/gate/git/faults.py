"""Faults for the words that git and libgit2 use when something fails.

The machine's troubles (no room, no descriptors) are not the repository's, and damaged objects
are not a refusal of git's: each has another cure. Only the words tell them apart."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from patchq.gate.errors import DiskFault, Fault, ObjectDamaged, RepositoryFault
from patchq.gate.git import files

FSCK = "run `git fsck --full` and restore what it names from another clone"
ROOM = "see to that, then start patchq again; nothing was lost"
_DAMAGE = re.compile(
    r"(?i)unable to read (tree|sha1|[0-9a-f]{40})|failed to (read|unpack) (tree )?object|"
    r"could not read [0-9a-f]{40}|bad (tree|object)|missing (blob|tree|object)|is corrupt|"
    r"object file .* is empty|unable to unpack|inflate: |hash mismatch"
)
_UNWRITTEN = re.compile(
    r"(?i)(unable|could not|cannot|failed) to? ?(write|create|make|close|append)|write error|"
    r"cannot mkdir|unable to .*\.lock"
)
_TROUBLE = {
    os.strerror(number)
    for number in (
        errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM
    )
}  # fmt: skip


def failure(what: str, complaint: str, place: Path) -> Fault:
    """Return the fault for git's complaint about its work in `place`.

    Git does not always say why a file could not be written."""
    text = f"{what}: {complaint}"
    trouble = _trouble_in(complaint)
    if not trouble and _UNWRITTEN.search(complaint) and (short := files.shortage(place)):
        trouble, text = short, f"{what}: {short}: {complaint}"
    if trouble:
        return DiskFault(text if trouble in text else f"{what}: {trouble}: {complaint}", ROOM)
    return ObjectDamaged(text, FSCK) if _DAMAGE.search(complaint) else RepositoryFault(text)


def _trouble_in(text: str) -> str | None:
    """The system's words for what the machine is short of, if a message of git's or libgit2's has
    them or says as much."""
    if "out of diskspace" in text.lower():
        return os.strerror(errno.ENOSPC)
    return next((words for words in sorted(_TROUBLE) if words.lower() in text.lower()), None)


def fault(what: str, error: Exception) -> Fault:
    trouble = _trouble_in(str(error))
    return (
        DiskFault(f"{what}: {trouble}", ROOM)
        if trouble
        else RepositoryFault(f"{what}: {error}", FSCK)
    )


def unreadable(what: str, error: Exception) -> Fault:
    """The fault of reading objects: the disk's, or of these alone."""
    found = fault(what, error)
    named = what.rpartition(" ")[2]  # libgit2 often begins with the object that `what` names
    why = "it is missing" if isinstance(error, KeyError) else str(error).removeprefix(f"{named}: ")
    return found if isinstance(found, DiskFault) else ObjectDamaged(f"{what}: {why}", FSCK)


def misconfigured(error: Exception) -> Fault:
    """Return the fault of reading git's configuration: the machine's, or a mistake in it."""
    found = fault("cannot read git's configuration", error)
    cure = "see what `git config --list --show-origin` says"
    return found if isinstance(found, DiskFault) else RepositoryFault(str(found), cure)
