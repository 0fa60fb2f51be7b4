"""The questions that reading a response asks of a tree."""

from __future__ import annotations

from collections.abc import Callable

from patchq.core.formats.marks.paths import BasePaths, Known
from patchq.core.model.values import Tree
from patchq.core.text.quote import decode


def base_paths(
    tree: Tree,
    below: Callable[[str], str | None] = lambda path: None,
    ignores: Known = lambda path: False,
) -> BasePaths:
    """Return what a response may call the files of `tree`.

    `below` gives the path that an absolute one names; `ignores` tells the paths that git ignores.
    """

    def kind(path: str) -> str | None:
        entry = tree.entry(path) if path and "\0" not in path else None
        return entry.kind if entry else None

    def has(path: str) -> bool:
        return kind(path) not in (None, "tree")

    def text(path: str) -> str | None:
        return decode(tree.read(path)) if kind(path) == "file" else None

    return BasePaths(has, lambda path: kind(path) == "tree", below, text, ignores, tree.paths)
