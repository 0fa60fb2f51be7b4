"""`worktree.backup`: a copy of each file of a work tree that is about to be updated.

`a.py` is kept as `a.py.bak`, and where that is taken as `a.py.bak.2`, `.3`, …; an older copy is
never overwritten.  One line of `info/exclude` for each path keeps its copies out of `git status`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Container, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from patchq.gate.errors import DiskFault

_SPECIAL = re.compile(r"([\\*?\[ !#])")
_ESCAPED = r"\\\1"


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
