"""What a response may know of the base and the work trees while it is read."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.core.formats.base_paths import base_paths
from patchq.core.formats.marks.paths import BasePaths
from patchq.core.model.values import Tree
from patchq.gate.config.policy import ignored_by
from patchq.gate.git.located import WorkTrees


def known_paths(tree: Tree, work_trees: WorkTrees) -> BasePaths:
    """What a response may call the files of the tree."""

    def below(path: str) -> str | None:
        found = work_trees.find(path)
        seen = found.path is not None and (not found.reason or paths.has(found.path))
        return found.path if seen else None

    read: dict[str, Sequence[str]] = {}

    def patterns(directory: str) -> Sequence[str]:
        if directory not in read:
            read[directory] = (paths.text(f"{directory}.gitignore") or "").splitlines()
        return read[directory]

    def ignores(path: str) -> bool:
        names = path.split("/")
        above = ("".join(f"{name}/" for name in names[:n]) for n in range(len(names)))
        own = any(ignored_by(patterns(top), path.removeprefix(top)) for top in above)
        return own or work_trees.ignore(path)

    paths = base_paths(tree, below, ignores)
    return paths
