"""The way back of a work tree that is about to be updated: room for it, and copies of its files.

Who runs out of room half-way needs some to undo what it did: new files, a new index, descriptors
for a git that does it.  So these are taken first, by files without a name that no crash leaves, and
given back when they are needed.  Where they cannot be had, nothing was begun.

With `worktree.backup` each file that changes is copied.
`a.py` is kept as `a.py.bak`, and where that is taken as `a.py.bak.2`, `.3`, …; an older copy is
never overwritten.  One line of `info/exclude` for each path keeps its copies out of `git status`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping
from contextlib import ExitStack, suppress
from errno import EINVAL, EOPNOTSUPP
from itertools import count
from pathlib import Path

from patchq.gate.errors import DiskFault

_SPECIAL = re.compile(r"([\\*?\[ !#])")
_ESCAPED = r"\\\1"
_DESCRIPTORS = 12  # needed to start a process and to talk to it


def keep(commondir: Path, workdir: Path, paths: Iterable[str]) -> list[Path]:
    """Copy those of the paths (relative to the work tree) that are files or links now; the copies.

    They are there, but not flushed, on return.  No copy takes one of the paths.
    """
    places = {path: workdir / path for path in sorted(set(paths))}
    there = [path for path, at in places.items() if at.is_symlink() or at.is_file()]
    exclude(commondir, [f"/{_SPECIAL.sub(_ESCAPED, path)}.bak*" for path in there])
    try:
        return [_copy(places[path], places.values()) for path in there]
    except OSError as error:
        raise DiskFault(f"cannot keep a backup: {error}") from error


def exclude(commondir: Path, patterns: Iterable[str]) -> None:
    """Have git pass over what the patterns match, without touching a file of the repository."""
    path = commondir / "info" / "exclude"
    known = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    lines = set(known.splitlines())
    new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in lines]
    if new:
        path.parent.mkdir(exist_ok=True)
        start = "" if not known or known.endswith("\n") else "\n"
        with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(start + "".join(f"{pattern}\n" for pattern in new))


def _copy(place: Path, reserved: Container[Path]) -> Path:
    for number in count(1):
        copy = place.with_name(f"{place.name}.bak" + (f".{number}" if number > 1 else ""))
        if copy in reserved:
            continue
        with suppress(FileExistsError):
            if place.is_symlink():
                copy.symlink_to(os.readlink(place))
            else:
                copy.touch(0o600, exist_ok=False)
                shutil.copy2(place, copy)
            return copy
    raise AssertionError("numbers do not end")


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
