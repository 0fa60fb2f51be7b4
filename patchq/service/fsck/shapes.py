"""What stands under each name that patchq uses: looked at before any of it is read.

A careless script or a bad restore leaves directories, links and files that nobody may read where
plain files belong, and everything that reads would stumble over them one by one.  What does not
belong is set aside in `damaged/`, nothing is deleted; what it told is then missing, and found so.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from patchq.land.worker import TRIES
from patchq.queue.directory import PAGE, PRIVATE, PUBLIC, REPORT
from patchq.queue.finished import VERDICTS
from patchq.queue.spool import token_of
from patchq.service.fsck.damage import Damage
from patchq.service.retention import NAME as CLOCK
from patchq.service.stats import NAME as COUNTS

_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISREG: "file",
    stat.S_ISDIR: "directory",
    stat.S_ISLNK: "symbolic link",
}
READ, _WRITE, _ENTER = os.R_OK, os.R_OK | os.W_OK, os.R_OK | os.W_OK | os.X_OK

_LOCK = "lock"

Place = tuple[Path, Callable[[int], bool], int]
"""A path, the test of its kind, and the rights that patchq needs there."""


def check(root: Path) -> Iterator[Damage]:
    """Everything that cannot be read as what its name says."""
    for folder in (root, *(root / name for name in (*PUBLIC, *PRIVATE, TRIES))):
        found = list(_wrong(root, (folder, stat.S_ISDIR, _ENTER)))
        yield from found
        if not found and folder.is_dir():
            for place in _inside(root, folder):
                yield from _wrong(root, place)


def _allowed(root: Path) -> int:
    """The rights that anybody can have: none to write, where it is mounted so."""
    return READ | os.X_OK if os.statvfs(root).f_flag & os.ST_RDONLY else _ENTER


def lock(root: Path) -> Iterator[Damage]:
    """What is wrong with the queue lock, which is mended before anybody can have it: what is no
    file, nobody holds, and who held the file that was there stops."""
    return _wrong(root, (root / _LOCK, stat.S_ISREG, _WRITE))


def _inside(root: Path, folder: Path) -> Iterator[Place]:
    for path in sorted(folder.iterdir()):
        token = token_of(path.name)
        if folder == root and path.name in (VERDICTS, COUNTS, CLOCK, _LOCK):
            yield path, stat.S_ISREG, _WRITE
        elif folder.name == "ids":
            yield path, stat.S_ISLNK, 0
        elif folder.name in ("sources", TRIES):
            yield path, stat.S_ISREG, _WRITE
        elif folder.name == "active" and token == path.name:
            yield path, stat.S_ISDIR, _ENTER
        elif (folder.name == "active" and token) or (
            folder.name in PUBLIC[1:] and path.name.endswith((REPORT, PAGE))
        ):
            yield path, stat.S_ISREG, READ
        elif folder.name in PUBLIC[2:] and stat.S_ISREG(path.lstat().st_mode):
            yield path, stat.S_ISREG, READ  # a response may be anything


def _wrong(root: Path, place: Place) -> Iterator[Damage]:
    path, belongs, rights = place
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not belongs(mode):
        mend = partial(_replace_id if path.parent == root / "ids" else aside, root, path)
        what = f"there has to be a {_KINDS[belongs]}, and it is something else"
        yield Damage("entry.foreign", str(path), what, mend=mend)
    elif rights and not os.access(path, rights & _allowed(root)):
        own = path.lstat().st_uid == os.geteuid()
        mend = partial(path.chmod, stat.S_IMODE(mode) | rights << 6)
        yield Damage(
            "entry.closed",
            str(path),
            "patchq has not the rights that it needs here",
            f"chown {os.geteuid()} '{path}'",
            mend if own else None,
        )


def aside(root: Path, path: Path, name: str | None = None) -> None:
    """Move what stands there into `damaged/`, beside what came there before."""
    folder = root / "damaged"
    folder.mkdir(exist_ok=True)
    name = name or path.name
    target, number = folder / name, 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{name}.{number}"
    with suppress(OSError):  # a directory is renamed by who may write in it
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.move(path, target)


def _replace_id(root: Path, path: Path) -> None:
    """The name is what counts: no other batch may get it."""
    aside(root, path)
    path.symlink_to("restored")
