"""Refs as the files that git keeps them in: which there are, their values, what each HEAD is on.

Files are read here and not by libgit2: it reads `packed-refs` as well, but knows by size, inode and
time whether that is another one than it has read, which two that are written within a tick may
share; and pygit2 1.21 keeps every name that it was ever asked for.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from errno import ENAMETOOLONG
from functools import partial
from itertools import pairwise
from pathlib import Path
from weakref import finalize

from patchq.gate.errors import RepositoryFault
from patchq.gate.git import files

_BAD_NAME = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]      # a character that git reserves
    | (?:^|/)(?:\.|/|$)              # an empty component, or one that starts with a dot
    | \.\. | @\{ | \.$ | \.lock(?:/|$)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(rb"([0-9a-fA-F]{40})(?:\s|\Z)")
_ENTRY = re.compile(rb"([0-9a-fA-F]{40}) (\S+)\n")
_BLOCK, _MOST_KEPT = 4096, 2
_SYMBOLIC, _SEE = "ref:", "`patchq fsck` says what is wrong with it"


def is_ref_name(name: str) -> bool:
    """Return True if git takes the full name (`git help check-ref-format`)."""
    return _BAD_NAME.search(name) is None and name.count("/") > 1


def common_directory(gitdir: Path) -> Path:
    """Return the real path of the git directory that all work trees of a repository share."""
    pointer = gitdir / "commondir"
    common = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.exists() else ""
    return Path(os.path.realpath(gitdir / common))


def ref_value(commondir: Path, name: str) -> str | None:
    """Return the id that the ref holds, loose or packed, or what begins with `ref:`.

    None where neither is.  `RepositoryFault` for a file that says something else.
    """
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return None
    value = _loose(commondir, name) if is_ref_name(name) else None
    return value or packed_refs(commondir).values.get(name)


def ref_values(commondir: Path, prefix: str) -> dict[str, str]:
    """Return the direct refs under `prefix`, which ends in a slash: full name -> id."""
    names = loose_names(commondir, prefix)
    loose = {name: value for name in names if (value := _loose(commondir, name))}
    found = packed_refs(commondir).below(prefix) | loose  # read second, as refs move there
    return {name: found[name] for name in sorted(found) if not found[name].startswith(_SYMBOLIC)}


def ref_names(commondir: Path, prefix: str) -> list[str]:
    """Return the full names of the refs under `prefix` (which ends in a slash)."""
    return sorted({*loose_names(commondir, prefix), *packed_refs(commondir).below(prefix)})


def loose_names(commondir: Path, prefix: str) -> list[str]:
    """Return the full names of those that have a file of their own, or seem to."""
    top = f"{commondir}/{prefix}".rstrip("/")
    return [
        prefix + f"{where}/{name}"[len(top) + 1 :]
        for where, _, names in os.walk(top)
        for name in names
        if not name.endswith(".lock")
    ]


def _loose(commondir: Path, name: str) -> str | None:
    """Read a ref as git does: digits in either case, and after a space whatever there is."""
    path = f"{commondir}/{name}"
    try:
        with files.opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            text = os.read(fd, _BLOCK)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            return None
        raise RepositoryFault(f"cannot read {name}: {error.strerror}", _SEE) from None
    if text.startswith(_SYMBOLIC.encode()):
        return os.fsdecode(text).strip()
    if (digits := _VALUE.match(text)) is None:
        raise RepositoryFault(f"cannot read {name}: {path} holds no id of an object", _SEE)
    return digits[1].decode().lower()


class PackedRefs:
    """The entries of `packed-refs`, by their full names."""

    def __init__(self, path: str, data: bytes) -> None:
        lines = [line for line in data.splitlines(keepends=True) if line[:1] not in b"#^"]
        entries = [_ENTRY.fullmatch(line) for line in lines]
        if None in entries:
            why = f"{path} has a line that is no ref"
            raise RepositoryFault(why, "`patchq fsck` says which")
        self.values = {os.fsdecode(it[2]): it[1].decode().lower() for it in entries if it}
        self._names = sorted(self.values)

    def below(self, prefix: str) -> dict[str, str]:
        """Return those under `prefix`, which ends in a slash."""
        first, last = (bisect_left(self._names, end) for end in (prefix, f"{prefix[:-1]}0"))
        return {name: self.values[name] for name in self._names[first:last]}


# The files that were read last. They are replaced and not changed; as long as one is open, no
# other one gets its number.
_kept: dict[str, tuple[tuple[int, ...], PackedRefs]] = {}


def packed_refs(commondir: Path) -> PackedRefs:
    """Return the file as it is now; an empty one where there is none."""
    path = f"{commondir}/packed-refs"
    kept = _kept.get(path)
    try:
        if kept is None or kept[0] != _mark(os.stat(path)):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            mark = _mark(os.fstat(fd))
            kept = mark, PackedRefs(path, b"".join(iter(partial(os.read, fd, 1 << 20), b"")))
            finalize(kept[1], os.close, fd)
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[path] = kept
    except FileNotFoundError:
        return PackedRefs(path, b"")
    return kept[1]


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells a file, and one that was written over in place, from another."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def heads(commondir: Path) -> Iterator[tuple[Path, str]]:
    """Yield each git directory (a bare repository's own included) with the full name of the ref
    that its HEAD is on; empty when detached."""
    with suppress(FileNotFoundError):
        yield commondir, head_target(commondir)
    try:
        entries = sorted(os.listdir(f"{commondir}/worktrees"))
    except FileNotFoundError:
        return
    for entry in entries:
        gitdir = commondir / "worktrees" / entry
        with suppress(FileNotFoundError, NotADirectoryError):
            yield gitdir, head_target(gitdir)


def head_target(gitdir: Path) -> str:
    """Return the full name of the ref that HEAD is on there; empty when detached."""
    text = os.fsdecode(files.content(f"{gitdir}/HEAD"))
    return text[4:].strip() if text.startswith("ref:") else ""


def gaps(commondir: Path, ref: str) -> Iterator[tuple[str, str]]:
    """Yield commits that the reflog passes over, each with the one that came instead.

    A line of the log then does not start at the commit at which the one before it ended."""
    with suppress(FileNotFoundError):
        lines = [line.split(b" ", 2) for line in (commondir / "logs" / ref).open("rb")]
        for (_, before, _), (old, new, _) in pairwise(line for line in lines if len(line) == 3):
            if old != before:
                yield before.decode("ascii", "replace"), new.decode("ascii", "replace")
