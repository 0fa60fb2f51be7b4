"""The search for lines under another path than the one that was named."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from patchq.core.model.errors import Unreadable
from patchq.core.model.listing import Listing
from patchq.core.model.values import Tree
from patchq.core.resolve.effort import BYTES_A_STEP, Effort

_MOST_FILES = 1000
_MOST_BYTES = 16 << 20
"""A repository may be large and a batch may hold many wrong quotes: so far one is looked for."""
_PER_FILE = 8


class Sweep(Struct, frozen=True):
    """The other file that has some lines, if any has.

    `everywhere`: all files were searched; else `reach` says, as the end of a clause, how many.
    """

    path: str | None = None
    everywhere: bool = False
    reach: str = "; other files were not searched for it"


class Elsewhere:
    """The files of a tree, as far as the bounds reach, and as they can be read."""

    def __init__(self, tree: Tree, effort: Effort) -> None:
        self._tree = tree
        self._effort = effort
        self._own: dict[str, bytes] = {}

    def search(self, lines: bytes, but: str, own: Iterable[str]) -> Sweep:
        """A file other than `but` that holds `lines`; the batch's `own` come first."""
        if self._effort.left <= 0:
            return Sweep()
        listing = self._tree.listing()
        everywhere = listing.whole and len(listing.paths) <= _MOST_FILES
        found, files, left = None, 0, _MOST_BYTES
        for path in islice(dict.fromkeys([*own, *listing.paths[:_MOST_FILES]]), _MOST_FILES):
            if path == but:
                continue
            data = self._content(path, listing) if left > 0 else None
            everywhere &= data is not None
            if data is None:
                continue
            files, left = files + 1, left - len(data)
            if _hold_lines(data, lines):
                found = path
                break
        self._effort.spend(_PER_FILE * files + (_MOST_BYTES - left) // BYTES_A_STEP)
        if found or everywhere:
            return Sweep(found, everywhere, "")
        return Sweep(reach=f"; only {files:,} other files were searched for it")

    def _content(self, path: str, listing: Listing) -> bytes | None:
        """A file's bytes; none where there is no file, None where it cannot be read."""
        known = listing.contents if path in listing.contents else self._own
        if path not in known:
            try:
                entry = self._tree.entry(path)
                data = self._tree.read(path) if entry is not None and entry.kind == "file" else b""
            except Unreadable:
                return None
            known = listing.contents if listing.has(path, _MOST_FILES) else self._own
            known[path] = data
        return known[path]


def _hold_lines(data: bytes, lines: bytes) -> bool:
    """Return True if the bytes have these as whole lines, but for blanks at their ends."""
    at = data.find(lines) if lines else -1
    while at >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at + len(lines))
        behind = data[at + len(lines) : last if last >= 0 else len(data)]
        if not data[first:at].strip() and not behind.strip():
            return True
        below = data.find(b"\n", at) + 1
        at = data.find(lines, below) if below else -1
    return False
