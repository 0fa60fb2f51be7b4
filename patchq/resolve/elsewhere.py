"""The file that a quote under a wrong path comes from; for reports only.

A repository may be large and a batch may hold many wrong quotes, so that the search has bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from patchq.model.values import Tree

_MOST_FILES = 1000
_MOST_BYTES = 16 << 20


class Elsewhere:
    """The files of a tree, each read once, as far as the bounds reach."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._read: dict[str, bytes] = {}
        self._room = _MOST_BYTES
        self._paths: list[str] | None = None

    def search(self, lines: bytes, but: str, first: Iterable[str] = ()) -> tuple[str | None, bool]:
        """The path of a file other than `but` that holds `lines`, and whether, if there is none,
        all files were looked into.  Those at the paths `first` come first."""
        if self._paths is None:
            self._paths = list(islice(self._tree.paths(), _MOST_FILES + 1))
        for path in islice(dict.fromkeys(chain(first, self._paths)), _MOST_FILES):
            if path != but and lines in self._content(path):
                return path, True
        return None, len(self._paths) <= _MOST_FILES and self._room > 0

    def _content(self, path: str) -> bytes:
        """The file's bytes; none where there is no file, or no room for more."""
        if path not in self._read:
            entry = self._tree.entry(path) if self._room > 0 else None
            data = self._tree.read(path) if entry is not None and entry.kind == "file" else b""
            self._read[path] = data
            self._room -= len(data)
        return self._read[path]
