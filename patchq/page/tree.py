"""The files of a change as a tree: folders that hold one folder alone are joined with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from patchq.gate.review.rows import FileRows

_GENERATED = re.compile(
    r"(^|/)(vendor|node_modules|third_party|dist)/|\.(lock|min\.js|min\.css|map|snap)$"
    r"|(^|/)(package-lock\.json|pnpm-lock\.yaml|go\.sum|Cargo\.lock)$|_pb2\.py$|\.pb\.go$"
)


class TreeFile(Struct, frozen=True):
    """A file of the tree, its place on the page, and the number of its comments."""

    number: int
    file: FileRows
    comments: int

    @property
    def name(self) -> str:
        return self.file.path.rpartition("/")[2]


class TreeFolder(Struct, frozen=True):
    """A folder of the tree."""

    name: str
    folders: tuple[TreeFolder, ...]
    files: tuple[TreeFile, ...]


def is_generated(path: str) -> bool:
    """Return True for a lock file, vendored code and the like, by their usual names."""
    return bool(_GENERATED.search(path))


def tree_of(files: Sequence[TreeFile], name: str = "", depth: int = 0) -> TreeFolder:
    """Return the tree of files, whose first `depth` folders are the one that is made."""
    below: dict[str, list[TreeFile]] = {}
    here: list[TreeFile] = []
    for one in files:
        parts = one.file.path.split("/")
        if len(parts) == depth + 1:
            here.append(one)
        else:
            below.setdefault(parts[depth], []).append(one)
    if len(below) == 1 and not here and name:
        (only, inside), *_ = below.items()
        return tree_of(inside, f"{name}/{only}", depth + 1)
    folders = tuple(tree_of(inside, part, depth + 1) for part, inside in sorted(below.items()))
    return TreeFolder(name, folders, tuple(here))
