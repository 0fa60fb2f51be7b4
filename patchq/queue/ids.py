"""Ids that were ever used, as symbolic links `ids/ID -> TOKEN` that point to nothing.

Making a link is one call that fails when the name is taken and carries its content with it, so no
crash leaves an id without its owner, and it works on a full disk.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

from patchq.model.names import response_name
from patchq.queue.spool import Folder

MAX_ID_BYTES = 100
_HINTS = 10_000
_SUFFIX = re.compile(r".+(\.[A-Za-z0-9]{1,10})", re.DOTALL)


def valid(id: str) -> bool:
    """Whether the text may be an id at all, and so a part of file names."""
    if not id or id.startswith(".") or "/" in id or "\0" in id:
        return False
    return len(os.fsencode(id)) <= MAX_ID_BYTES


def extension(name: str | None) -> str:
    """The suffix of a response's file name if it is plain and short, else `.txt`;
    a report that was made from git alone knows no name."""
    match = _SUFFIX.fullmatch(response_name(name or ""))
    return match[1] if match else ".txt"


class Ids:
    """The register of ids; `is_known` says of an id whether the repository knows it."""

    def __init__(self, folder: Folder, is_known: Callable[[str], bool]) -> None:
        self.folder = folder
        self._is_known = is_known
        self._last: dict[str, int] = {}

    def reserve(self, token: str, wanted: str, *, again: bool) -> str:
        """The first free one of `wanted`, `wanted-2`, …, now the token's; `again` says that the
        token may have one already."""
        if not valid(wanted):
            raise ValueError(f"not an id: {wanted!r}")
        if again:
            for id, owner in self._known(wanted):
                if owner == token:
                    return id
        number = self._last.get(wanted, 0)
        while True:
            number = self._free_from(wanted) if number == 1 else number + 1
            id = _numbered(wanted, number)
            if not self._barred(id) and self._mark(id, token):
                break
        if number > 1:
            if len(self._last) >= _HINTS:
                self._last.clear()
            self._last[wanted] = number
        return id

    def next(self, wanted: str) -> str:
        """The id that `reserve` would give now."""
        return next(id for id, owner in self._known(wanted) if owner is None)

    def token(self, id: str) -> str | None:
        """The claim that the id was given to."""
        try:
            return os.readlink(id, dir_fd=self.folder.fd)
        except OSError:
            return None

    def _known(self, wanted: str) -> Iterator[tuple[str, str | None]]:
        """The ids made from `wanted` with their claims, in order, and the first free one, which has
        none."""
        for number in itertools.count(1):
            id = _numbered(wanted, number)
            owner = self.token(id)
            if owner is not None or not self._barred(id):
                yield id, owner
                if owner is None:
                    return

    def _barred(self, id: str) -> bool:
        # `x.report` with the suffix `.json` would be the name of the report of `x`.
        return id.lower().endswith(".report") or self._is_known(id)

    def _mark(self, id: str, token: str) -> bool:
        try:
            os.symlink(token, id, dir_fd=self.folder.fd)
        except FileExistsError:
            return False
        return True

    def _free_from(self, wanted: str) -> int:
        """A number from which on none is used, found in a logarithmic number of looks; those below
        it may have gaps, which stay."""
        used, free = 1, 2
        while self.token(_numbered(wanted, free)) is not None:
            used, free = free, free * 2
        while free - used > 1:
            middle = (used + free) // 2
            if self.token(_numbered(wanted, middle)) is None:
                free = middle
            else:
                used = middle
        return free


def _numbered(wanted: str, number: int) -> str:
    if number == 1:
        return wanted
    suffix = f"-{number}"
    room = MAX_ID_BYTES - len(suffix)
    return os.fsencode(wanted)[:room].decode("utf-8", "ignore") + suffix
