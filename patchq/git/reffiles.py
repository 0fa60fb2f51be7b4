"""Refs as git keeps them in plain files: loose ones, `packed-refs`, and the HEAD of each work tree.

libgit2 reads every ref of a repository to list some of them: 80 ms where 10,000 lie loose.

`packed-refs` holds many in one file, which is replaced as a whole under git's own lock: a group of
batches records itself there by one file instead of one for each, and a ref that is deleted has to
go from there as well.  See git-pack-refs(1); a loose ref of the same name wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from patchq.git.linklock import LinkLock

_BAD_NAME = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]      # a character that git reserves
    | (?:^|/)(?:\.|/|$)              # an empty component, or one that starts with a dot
    | \.\. | @\{ | \.$ | \.lock(?:/|$)
    """,
    re.VERBOSE,
)


_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_ENTRY = re.compile(rb"^[0-9a-f]{40} (\S+)\n(?:\^[0-9a-f]{40}\n)?", re.MULTILINE)


def common_directory(gitdir: Path) -> Path:
    """The real path of the git directory that all work trees of a repository share."""
    pointer = gitdir / "commondir"
    common = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.exists() else ""
    return Path(os.path.realpath(gitdir / common))


def ref_names(commondir: Path, prefix: str) -> list[str]:
    """The full names of the refs under `prefix` (which ends in a slash), loose and packed."""
    top = commondir / prefix
    names = {
        prefix + os.path.relpath(os.path.join(where, name), top)
        for where, _, files in os.walk(top)
        for name in files
        if not name.endswith(".lock")
    }
    packed = re.compile(rb"^[0-9a-f]{40} (%s.+)$" % re.escape(os.fsencode(prefix)), re.M)
    return sorted(names.union(map(os.fsdecode, packed.findall(_packed(commondir)))))


def heads(commondir: Path) -> Iterator[tuple[Path, str]]:
    """The git directory of each work tree (a bare repository's own included), and the full name
    of the ref that its HEAD stands for; empty when detached."""
    with suppress(FileNotFoundError):
        yield commondir, _head(commondir)
    with suppress(FileNotFoundError):
        for entry in sorted(os.listdir(commondir / "worktrees")):
            gitdir = commondir / "worktrees" / entry
            with suppress(FileNotFoundError, NotADirectoryError):
                yield gitdir, _head(gitdir)


def _head(gitdir: Path) -> str:
    text = os.fsdecode((gitdir / "HEAD").read_bytes())
    return text[4:].strip() if text.startswith("ref:") else ""


def has_below(commondir: Path, name: str) -> bool:
    """Whether a ref has `name` as its directory, which keeps `name` from being a ref."""
    if any(not file.endswith(".lock") for *_, files in os.walk(commondir / name) for file in files):
        return True
    return os.fsencode(f" {name}/") in _packed(commondir)


def is_ref_name(name: str) -> bool:
    """Whether git takes the full name (`git help check-ref-format`)."""
    return _BAD_NAME.search(name) is None and name.count("/") > 1


def pack(commondir: Path, refs: Mapping[str, str], suffix: str, wait: float) -> None:
    """Set refs (full name -> commit) in `packed-refs`; durable after the next barrier but one, as a
    lost entry can be made again.  `errors.Busy` if others hold the lock for `wait` seconds."""
    entries = {name.encode(): f"{oid} {name}\n".encode() for name, oid in refs.items()}

    def added(packed: bytes) -> bytes:
        known = {match[1]: match[0] for match in _ENTRY.finditer(packed)} | entries
        return _HEADER + b"".join(known[name] for name in sorted(known))

    _repack(commondir, added, suffix, wait)


def unpack(commondir: Path, ref: str, suffix: str, wait: float) -> None:
    """Take a ref out of `packed-refs`, if it is there."""
    entry = re.compile(rb"^[0-9a-f]{40} %s\n(?:\^[0-9a-f]{40}\n)?" % re.escape(ref.encode()), re.M)
    if entry.search(_packed(commondir)):
        _repack(commondir, lambda packed: entry.sub(b"", packed), suffix, wait)


def _packed(commondir: Path) -> bytes:
    path = commondir / "packed-refs"
    return path.read_bytes() if path.exists() else b""


def _repack(commondir: Path, change: Callable[[bytes], bytes], suffix: str, wait: float) -> None:
    lock = LinkLock.write(commondir, suffix, b"")
    try:
        lock.hold(commondir / "packed-refs.lock", wait)
        lock.append(change(_packed(commondir)))
        lock.flush()
        lock.publish(commondir / "packed-refs")
    finally:
        lock.free()
