"""The floor: what libgit2 alone costs for a list of small changes, one commit and ref move each.

`python floor.py REPO CHANGES.json fsync|none`.  No queue, no parsing, no checks, no report: find
the blob down the path, replace the lines, write the blob, the trees up the path and the commit,
move the ref.  A process of its own, timed from outside like the command that it is compared with.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pygit2
from pygit2.enums import FileMode


def write(
    repo: pygit2.Repository, tree: pygit2.Tree, parts: list[str], old: bytes, new: bytes
) -> pygit2.Oid:
    """The object name of `tree` with `old` replaced by `new` in the file at `parts`."""
    entry = tree[parts[0]]
    if isinstance(entry, pygit2.Blob):
        oid, mode = repo.create_blob(entry.data.replace(old, new)), FileMode.BLOB
    else:
        assert isinstance(entry, pygit2.Tree)
        oid, mode = write(repo, entry, parts[1:], old, new), FileMode.TREE
    builder = repo.TreeBuilder(tree)
    builder.insert(parts[0], oid, mode)
    return builder.write()


def main(where: str, listing: str, durability: str) -> None:
    pygit2.settings.enable_fsync_gitdir(durability == "fsync")
    repo = pygit2.Repository(where)
    who = pygit2.Signature("Bench", "bench@example.org", 1_700_000_000, 0)
    for change in json.loads(Path(listing).read_text()):
        branch = repo.references["refs/heads/main"]
        tip = branch.peel(pygit2.Commit)
        old, new = change["old"].encode(), change["new"].encode()
        tree = write(repo, tip.tree, change["path"].split("/"), old, new)
        commit = repo.create_commit(None, who, who, f"Edit {change['path']}\n", tree, [tip.id])
        branch.set_target(commit)


if __name__ == "__main__":
    main(*sys.argv[1:])
