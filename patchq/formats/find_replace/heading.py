"""What stands above a FIND/REPLACE block: the file that it changes, and what the change does.

`FILE:` counts from wherever it stands behind the last edit, and so does a path that is a heading.
Any other path has to stand right above the block, or above its CHANGE line.  A sentence that names
one counts if nothing else does, and against the last edit's path only if it leads to the block with
a colon; that path counts only if the lines between name no other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.formats.document import Document
from patchq.formats.marks.fences import Fence, fence
from patchq.formats.marks.labels import change_line, file_line, path_behind
from patchq.formats.marks.paths import (
    Known,
    as_meant,
    mentions_other,
    path_line,
    path_of_info,
    path_of_sentence,
)
from patchq.formats.unreadable import Unreadable

SEND_BOTH = (
    "send both halves of the change, `FIND:` and `REPLACE WITH:`, each with a fence under it"
)
_LISTED = re.compile(r"\s*[-*+>]\s")
_SECTION = re.compile(r"\s*(?:#{1,6}\s|\*\*|__|(?:file(?: ?path| ?name)?|path)\s*:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above a block; `start` is the index of its CHANGE line, else of its label, and
    `top` the index of the line that names the path, if it stands higher."""

    path: str
    description: str | None
    start: int
    top: int


def heading_of(doc: Document, i: int) -> Heading:
    """The heading of the block whose `FIND:` stands on line `i`; raises `Unreadable`."""
    above, wrapper = _lines_above(doc, i)
    description: str | None = None
    named: str | None = None
    told: str | None = None
    between: list[str] = []
    start = top = i
    for j in reversed(above):
        line = doc.lines[j]
        if change := change_line(line):
            if description is not None and change.shouted:
                raise Unreadable(j, "expected `FIND:` and `REPLACE WITH:` under this", SEND_BOTH)
            if description is None:
                description, start, top = change.description, j, j
                continue
        named = _path_above(doc, j, near=not between)
        if named:
            top = j
            break
        if not between and (line.rstrip().endswith(":") or not (doc.path or doc.default_path)):
            told = path_of_sentence(line, doc.known)
        between.append(line)
    if named is None and wrapper:
        named = path_of_info(wrapper.info, doc.known)
    titled = _title(description, doc.known)
    if named and titled and titled != as_meant(named, doc.known):
        raise Unreadable(i, f"expected one path, found {named!r} and {titled!r}", "name it once")
    path = named or titled or told or _carried(doc, i, between)
    return Heading(as_meant(path, doc.known), description or None, start, top)


def _title(description: str | None, known: Known) -> str | None:
    """The path that is the whole description; `flask.run` is one only if the base has it."""
    path = path_line(description, known) if description else None
    path = as_meant(path, known) if path else None
    return path if path and known(path) else None


def _path_above(doc: Document, j: int, *, near: bool) -> str | None:
    """The path that line `j` names; one that is no heading only `near` the block."""
    line = doc.lines[j]
    if label := file_line(line):
        if path := path_behind(label, doc.known):
            return path
        raise Unreadable(j, "expected one path behind `FILE:`", "write `FILE: path`, and no more")
    if _LISTED.match(line) or not (near or _SECTION.match(line)):
        return None
    return path_line(line, doc.known)


def _carried(doc: Document, i: int, between: Sequence[str]) -> str:
    """The path of the block before this one, if the lines between name no other."""
    path = doc.path or doc.default_path
    if path and not any(mentions_other(line, path, doc.known) for line in between):
        return path
    raise Unreadable(
        i,
        "expected the path of the file that this block changes",
        "put `FILE: path`, relative to the repository's root, on a line above the block",
    )


def _lines_above(doc: Document, i: int) -> tuple[list[int], Fence | None]:
    """The indices of the lines behind the last edit that are not blank and stand in no fence that
    was closed before line `i`; and the fence that line `i` stands in."""
    above: list[int] = []
    wrapper: tuple[int, Fence] | None = None
    for j in range(doc.low, i):
        line = doc.lines[j]
        mark = fence(line)
        if mark is None:
            if line.strip():
                above.append(j)
        elif wrapper and wrapper[1].closed_by(mark):
            above[wrapper[0] :] = [j for j in above[wrapper[0] :] if file_line(doc.lines[j])]
            wrapper = None
        elif wrapper is None and not mark.closing:
            wrapper = len(above), mark
    return above, wrapper[1] if wrapper else None
