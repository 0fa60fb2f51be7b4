"""What a response may know of the base and the work trees while it is read."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.core.formats.marks.paths import BasePaths
from patchq.core.model.values import Tree
from patchq.core.text.quote import decode
from patchq.gate.config.policy import ignored_by
from patchq.gate.git.located import WorkTrees


def known_paths(tree: Tree, work_trees: WorkTrees) -> BasePaths:
    """What a response may call the files of the tree."""

    def kind(path: str) -> str | None:
        entry = tree.entry(path) if path and "\0" not in path else None
        return entry.kind if entry else None

    def has(path: str) -> bool:
        return kind(path) not in (None, "tree")

    def below(path: str) -> str | None:
        found = work_trees.find(path)
        seen = found.path is not None and (not found.reason or has(found.path))
        return found.path if seen else None

    def text(path: str) -> str | None:
        return decode(tree.read(path)) if kind(path) == "file" else None

    read: dict[str, Sequence[str]] = {}

    def patterns(directory: str) -> Sequence[str]:
        if directory not in read:
            read[directory] = (text(f"{directory}.gitignore") or "").splitlines()
        return read[directory]

    def ignores(path: str) -> bool:
        names = path.split("/")
        above = ("".join(f"{name}/" for name in names[:n]) for n in range(len(names)))
        own = any(ignored_by(patterns(top), path.removeprefix(top)) for top in above)
        return own or work_trees.ignore(path)

    return BasePaths(has, lambda path: kind(path) == "tree", below, text, ignores, tree.paths)
