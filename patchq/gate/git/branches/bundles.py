"""A commit for another clone: its own bytes, and the files it changes.

Who has the parent makes the very same commit of that, also where the one who made it first cannot
be asked any more.  Trees are left out: they follow from the parent's, and one of a large directory
is larger than what most commits change.
"""

from __future__ import annotations

import json
import zlib

from pygit2.enums import ObjectType

from patchq.gate.errors import RepositoryFault
from patchq.gate.git.objects import Leaf, as_changes, referred
from patchq.gate.git.repository import Repository

_LEVEL = 1
# It has a character for each byte, so text stays text, which compresses better than digits.
_BYTES = "latin-1"


def pack(repo: Repository, commit: str) -> bytes:
    """Return the parcel of a commit that has a parent."""
    (parent, *_) = repo.parents(commit)
    files = {
        path: after and (after[0], repo.raw(after[1]).decode(_BYTES))
        for path, (_, after) in repo.changes(parent, commit).items()
    }
    bundle = {"commit": repo.raw(commit).decode(_BYTES), "files": files}
    return zlib.compress(json.dumps(bundle).encode(), _LEVEL)


def unpack(repo: Repository, parcel: bytes) -> str | None:
    """Put the commit into memory, and return its id.

    None if a parent is missing here.  Raises `RepositoryFault` if another commit comes of it.
    """
    bundle = json.loads(zlib.decompress(parcel))
    raw = bundle["commit"].encode(_BYTES)
    root, *parents = referred(ObjectType.COMMIT, raw)
    if not parents or not all(map(repo.resolve_commit, parents)):
        return None
    base = repo.tree(parents[0]).root
    sides = dict[str, tuple[Leaf | None, Leaf | None]]()
    for path, file in bundle["files"].items():
        after = file and (file[0], repo.keep_blob(file[1].encode(_BYTES)))
        sides[path] = repo.leaf(base, path), after
    if repo.write_tree(parents[0], tuple(as_changes(sides, repo.raw))) != root:
        raise RepositoryFault(f"what was sent of a commit upon {parents[0]} makes another one")
    return repo.buffer.keep(ObjectType.COMMIT, raw)
