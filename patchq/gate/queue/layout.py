"""The directories of a queue of files: their names, how they are made, and who may read them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from patchq.gate.errors import UsageError
from patchq.gate.git.files import make_directory
from patchq.gate.queue.spool import disk_faults

REPORT = ".report.json"
PAGE = ".report.md"
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse.sshfs", "glusterfs", "afs"}
PUBLIC = ("inbox", "active", "done", "rejected")


def refuse_network(root: Path) -> None:
    """Raise `UsageError` where the store's locks may be lost with a connection."""
    kind = file_system(root)
    if kind in _NETWORK:
        raise UsageError(
            f"the queue {root} is on a network file system ({kind}), where locks may be lost",
            "set `queue.path` to a local disk; `queue.network_disk: true` allows it to one machine,"
            " and several machines share a queue as docs/cluster.md shows",
        )


def file_system(path: Path) -> str:
    """Return the kernel's name for the type of the file system; empty where it has none."""
    best, kind = -1, ""
    with suppress(OSError):
        where = os.path.realpath(path)
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            words = line.split(" ")
            point = words[4].encode().decode("unicode_escape")
            inside = where == point or where.startswith(f"{point.rstrip('/')}/")
            if inside and len(point) >= best:
                best, kind = len(point), words[words.index("-") + 1]
    return kind


@disk_faults
def create(root: Path, readers: int | None = None, sharers: int | None = None) -> None:
    """Make the queue's directories; safe to repeat.  The group `readers` may read reports, and
    only the owner; `sharers` is the group of a repository that is shared."""
    for name in PUBLIC:
        make_directory(root / name)
    for path in (root, *(root / name for name in PUBLIC)):
        status = path.stat()
        if sharers is not None and status.st_gid != sharers and os.geteuid() in (0, status.st_uid):
            with suppress(PermissionError):
                os.chown(path, -1, sharers)
    if readers is not None:
        for path in (root, *(root / name for name in PUBLIC[1:])):
            _let_read(path, readers, alone=path != root)


def _let_read(path: Path, group: int, *, alone: bool) -> None:
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    wanted = (mode & ~0o007 | stat.S_ISGID if alone else mode) | 0o050
    if os.geteuid() not in (0, status.st_uid):
        return
    try:
        if status.st_gid != group:
            os.chown(path, -1, group)
        if wanted != mode or status.st_gid != group:
            path.chmod(wanted)
    except PermissionError:
        raise UsageError(
            f"{path} cannot be given to the group that `queue.group` names",
            "have the user that runs patchq join that group, or name another one",
        ) from None
