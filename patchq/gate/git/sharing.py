"""Who else may use what patchq makes: umask says it, widened as git's `core.sharedRepository` asks.

The umask is the process's, so it is widened for all of it, once: what libgit2 makes follows it as
well.  What is none of the repository's (the files of a work tree, what hooks make) keeps the umask
that patchq was started with, so the programs that patchq starts get that one back.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

_NONE = {"umask", "false", "no", "off", "0", ""}
_GROUP = {"group", "true", "yes", "on", "1"}
_ALL = {"all", "world", "everybody", "2"}
_started_with: int | None = None


def widened(setting: str | None, umask: int) -> int:
    """The umask that gives what git gives: `setting` is a name, a boolean, or in octal the
    whole mode of a file.  What git does not read changes nothing here; git itself refuses it."""
    word = (setting or "").lower()
    if word in _NONE:
        return umask
    if word in _GROUP:
        return umask & ~0o070
    if word in _ALL:
        return umask & ~0o075
    mode = int(word, 8) if re.fullmatch(r"[0-7]+", word) else 0
    if mode & 0o600 != 0o600:
        return umask
    return 0o777 & ~(mode & 0o666 | (mode & 0o444) >> 2)


def share(setting: str | None) -> None:
    """Widen this process's umask as the repository's setting asks; safe to repeat."""
    global _started_with
    unshare()
    if (setting or "").lower() in _NONE:
        return
    _started_with = os.umask(0)
    os.umask(widened(setting, _started_with))


def unshare() -> None:
    """The umask is again what it was."""
    global _started_with
    if _started_with is not None:
        os.umask(_started_with)
        _started_with = None


def is_on() -> bool:
    return _started_with is not None


def childrens_umask() -> int:
    """For `subprocess`: the umask that this process was started with; -1 where it has that one."""
    return -1 if _started_with is None else _started_with


def umask() -> int:
    """This process's.  It is read by setting it, so this is for a time before there are threads."""
    current = os.umask(0o077)
    os.umask(current)
    return current


def beside(made: int, directory: int) -> int:
    """The permissions for what umask made so, in a directory of that mode: no wider than it, or, if
    it gives its group to what is in it, as wide for them."""
    if directory & stat.S_ISGID:
        return made | directory & 0o770
    return made if is_on() else made & directory


def make_directory(path: Path) -> None:
    """Make the directory and its parents; in a shared repository they give their group on."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
        made, above = (stat.S_IMODE(at.stat().st_mode) for at in (path, path.parent))
        shared = stat.S_ISGID if is_on() else 0
        mode = beside(made, above) | shared
        if mode != made:
            path.chmod(mode)
