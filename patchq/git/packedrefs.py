"""The file `packed-refs`: many refs in one file, replaced as a whole under git's own lock.

A group of batches records itself here by one file instead of one for each, and a ref that is
deleted has to go from here as well.  See git-pack-refs(1); a loose ref of the same name wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from patchq.git.linklock import LinkLock

_NAME = "packed-refs"
_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_ENTRY = re.compile(rb"^[0-9a-f]{40} (\S+)\n(?:\^[0-9a-f]{40}\n)?", re.MULTILINE)


def add(commondir: Path, refs: Mapping[str, str], suffix: str, wait: float) -> None:
    """Set refs (full name -> commit); durable after the next barrier but one, as a lost entry can
    be made again.  `errors.Busy` if others hold the lock for `wait` seconds."""
    entries = {name.encode(): f"{oid} {name}\n".encode() for name, oid in refs.items()}
    lock = LinkLock.write(commondir, suffix, b"")
    try:
        path = _hold(commondir, lock, wait)
        known = path.read_bytes() if path.exists() else b""
        entries = {match[1]: match[0] for match in _ENTRY.finditer(known)} | entries
        lock.append(_HEADER + b"".join(entries[name] for name in sorted(entries)))
        lock.flush()
        lock.publish(path)
    finally:
        lock.free()


def remove(commondir: Path, ref: str, suffix: str, wait: float) -> None:
    """Take a ref out, if it is there."""
    path = commondir / _NAME
    entry = re.compile(rb"^[0-9a-f]{40} %s\n(?:\^[0-9a-f]{40}\n)?" % re.escape(ref.encode()), re.M)
    if not path.exists() or not entry.search(path.read_bytes()):
        return
    lock = LinkLock.write(commondir, suffix, b"")
    try:
        _hold(commondir, lock, wait)
        lock.append(entry.sub(b"", path.read_bytes()))
        lock.flush()
        lock.publish(path)
    finally:
        lock.free()


def _hold(commondir: Path, lock: LinkLock, wait: float) -> Path:
    path = commondir / _NAME
    lock.hold(path.with_name(f"{_NAME}.lock"), wait)
    return path
