"""The files of a tree, listed once to explain wrong paths and quotes.

A listing lives as long as its tree, and the tree that follows is listed by what differs, so that a
refusal costs no walk.  Nothing here decides anything: it is for suggestions only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from patchq.core.model.names import collision_key

MOST_LISTED = 200_000
_END = "\0"  # what no path holds


class Unreadable(Exception):
    """A file or directory of a tree cannot be read."""


class Listing:
    """The paths of a tree's files, in order.

    `whole` is true if no path is left out, `damaged` if some could not be read.
    """

    def __init__(self, paths: list[str], whole: bool, damaged: bool = False) -> None:
        self.paths = paths
        self.whole = whole
        self.damaged = damaged

    @classmethod
    def of(cls, paths: Iterator[str], most: int = MOST_LISTED) -> Listing:
        """Return a listing of the first `most` paths that can be read.

        It is only for hints, so a damaged directory does not matter.
        """
        found: list[str] = []
        try:
            found.extend(islice(paths, most))
            whole = next(paths, None) is None
        except Unreadable:
            return cls(sorted(found), whole=False, damaged=True)
        return cls(sorted(found), whole)

    def followed(self, gone: Collection[str], come: Collection[str]) -> Listing:
        """Return the listing after files are removed, changed or added.

        `gone` are the files removed or changed, `come` those added or changed.
        """
        if set(gone) == set(come):
            return self
        last = "" if self.whole or not self.paths else self.paths[-1]
        inside = (path for path in come if self.whole or path <= last)
        return Listing(sorted({*self.paths}.difference(gone).union(inside)), self.whole)

    @cached_property
    def _joined(self) -> str:
        """Every path with a slash in front and `_END` behind."""
        return "".join(f"/{path}{_END}" for path in self.paths)

    @cached_property
    def _folded(self) -> str:
        """`_joined` as a file system sees it that folds case."""
        return collision_key(self._joined)

    def ending(self, path: str) -> Iterator[str]:
        """Yield the paths that end with these whole names."""
        return self._found(self._joined, f"/{path}{_END}")

    def alike(self, name: str) -> Iterator[str]:
        """Yield the files with this name, but for case and composition."""
        return self._found(self._folded, f"/{collision_key(name)}{_END}")

    def _found(self, text: str, end: str) -> Iterator[str]:
        known = counted = 0
        at = text.find(end)
        while at >= 0:
            known += text.count(_END, counted, at)
            counted = at
            yield self.paths[known]
            at = text.find(end, at + 1)

    def has(self, path: str) -> bool:
        """Return whether it is listed."""
        at = bisect_left(self.paths, path)
        return self.paths[at : at + 1] == [path]

    def near(self, path: str, most: int) -> list[str]:
        """Return the paths beside the place that a path would have among them."""
        first = max(bisect_left(self.paths, path) - most // 2, 0)
        return self.paths[first : first + most]
