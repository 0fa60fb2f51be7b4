"""Refs as the files that git keeps them in: which there are, and what each HEAD stands for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

_OID = re.compile(rb"[0-9a-fA-F]{40}")
_LONGEST = 4096


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
    packed = re.compile(rb"^[0-9a-fA-F]{40} (%s.+)$" % re.escape(os.fsencode(prefix)), re.M)
    return sorted(names.union(map(os.fsdecode, packed.findall(packed_refs(commondir)))))


def ref_values(commondir: Path, prefix: str) -> dict[str, str | None]:
    """What `ref_names` names, each with the id that it holds; None where a file holds something
    else.

    Loose refs are read first: one that is packed meanwhile is found in the second place.
    """
    top = os.fspath(commondir / prefix)
    loose: dict[str, str | None] = {}
    for where, _, files in os.walk(top):
        inside = prefix + where[len(top.rstrip("/")) :].lstrip("/")
        inside += "" if inside.endswith("/") else "/"
        for name in files:
            if not name.endswith(".lock"):
                with suppress(FileNotFoundError), open(f"{where}/{name}", "rb") as file:
                    text = file.read(_LONGEST).rstrip()
                    oid = text.decode().lower() if _OID.fullmatch(text) else None
                    loose[inside + name] = oid
    packed, start = packed_refs(commondir), os.fsencode(prefix)
    first, last = packed.find(b" " + start), packed.rfind(b" " + start)
    if first < 0:
        return dict(sorted(loose.items()))
    entry = re.compile(rb"^([0-9a-fA-F]{40}) (%s.+)$" % re.escape(start), re.M)
    found = entry.findall(packed, max(0, first - 40), last + 1 + _LONGEST)
    values = {os.fsdecode(name): oid.decode().lower() for oid, name in found}
    return dict(sorted((values | loose).items()))


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


def gaps(commondir: Path, ref: str) -> Iterator[tuple[str, str]]:
    """Where a line of the reflog does not start at the commit at which the one before it ended:
    that commit, which was passed over, and the one that came instead."""
    with suppress(FileNotFoundError):
        lines = [line.split(b" ", 2) for line in (commondir / "logs" / ref).open("rb")]
        for (_, before, _), (old, new, _) in pairwise(line for line in lines if len(line) == 3):
            if old != before:
                yield before.decode("ascii", "replace"), new.decode("ascii", "replace")


def packed_refs(commondir: Path) -> bytes:
    path = commondir / "packed-refs"
    return path.read_bytes() if path.exists() else b""
