"""The paths of a response's edits, as git has them.

The formats name a file as the response does, as far as its words tell.  What becomes of a diff's
prefix before the path of a new file is told by the other paths of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from patchq.core.formats import unified_diff
from patchq.core.formats.format import UnreadableEdit
from patchq.core.formats.marks.paths import PREFIXES, KnownPaths
from patchq.core.model.ops import MAKING, Rename
from patchq.core.model.values import Edit, Problem

_DIFF = unified_diff.FORMAT.name  # the form whose headers tell of prefixes themselves


def settled(edits: Iterable[Edit], known: KnownPaths) -> list[Edit]:
    """The edits with the paths that they mean; raises `UnreadableEdit` where a prefix may as well
    be a directory."""
    known_as: dict[str, str] = {}

    def meant(path: str) -> str:  # most edits share a few paths
        if path not in known_as:
            known_as[path] = known.meant(path)
        return known_as[path]

    named = [e if e.format == _DIFF else _renamed(e, meant) for e in edits]
    bare: dict[str, str] = {}
    for edit in (one for one in named if isinstance(one.op, MAKING)):
        for path in _new_paths(edit, known):
            if _may_be_prefixed(path, known):
                if path[:2] not in known.prefixes:
                    raise _two_readings(edit, path)
                bare[path] = path[2:]
    return [_renamed(edit, lambda path: bare.get(path, path)) for edit in named] if bare else named


def _renamed(edit: Edit, name: Callable[[str], str]) -> Edit:
    path, op = name(edit.path), edit.op
    if isinstance(op, Rename) and (to := name(op.to)) != op.to:
        op = Rename(to)
    return edit if path == edit.path and op is edit.op else replace(edit, path=path, op=op)


def _new_paths(edit: Edit, known: KnownPaths) -> Iterator[str]:
    """The paths at which an edit that makes a file does so, in a form without prefixes of its
    own."""
    if edit.format == _DIFF:
        return
    if isinstance(edit.op, Rename):
        yield edit.op.to
    elif not known.base.has(edit.path):
        yield edit.path


def _may_be_prefixed(path: str, known: KnownPaths) -> bool:
    """Whether a diff's prefix may stand before the path: the base has no such directory, and has
    the one that the rest is in."""
    directory = path[2:].rpartition("/")[0]
    there = known.base.has_directory
    return path[:2] in PREFIXES and bool(directory) and there(directory) and not there(path[0])


def _two_readings(edit: Edit, path: str) -> UnreadableEdit:
    line = edit.at[0]
    message = (
        f"line {line}, column 1: {path!r} may be {path[2:]!r} behind a diff's prefix, or a file in "
        f"a new directory {path[0]!r}"
    )
    hint = f"name the new file without a prefix: {path[2:]}"
    return UnreadableEdit.of(Problem("path.invalid", message, hint, line=line))
