"""Hunks of diffs and chunks of V4A patches: whole lines, with hints about where they stand.

The body decides.  A scope line, the file's end and a stated line number only tell equal places
apart; nearness never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchq.model.ops import PatchHunk, Replace
from patchq.model.values import Hunk
from patchq.resolve import ladder
from patchq.resolve.elide import Chain
from patchq.resolve.ladder import Found, Missed
from patchq.text.lines import BLANKS, Text


def resolve(
    text: Text, op: PatchHunk, rungs: Sequence[str], line: int | None = None
) -> Found | Missed:
    """Where `op` belongs in `text`.  `line` is the stated line if it may be believed."""
    behind = _behind_scopes(text, op.scopes)
    if not op.old:
        return _added(text, op, behind)
    narrow = _narrowed(text, op, behind, line)
    found = ladder.resolve(text, Replace(op.old, op.new), rungs, narrow)
    if isinstance(found, Missed) and found.why == "none" and op.bare:
        return ladder.resolve(text, Replace(*op.bare), rungs, narrow)
    return found


def taken_place(text: Text, op: PatchHunk, rungs: Sequence[str]) -> Found | None:
    """Where the new lines stand in place of the old ones, which are nowhere."""
    if not op.old:
        return None
    return ladder.taken_place(text, Replace(op.old, op.new), rungs)


def _added(text: Text, op: PatchHunk, behind: int | None) -> Found | Missed:
    """Lines without a neighbour: behind their scope, at the file's end, or in an empty one."""
    at = behind
    if not op.scopes and (op.at_end or not text.lines):
        at = len(text.lines)
    if at is None:
        return Missed("none", detail="it adds lines and quotes none")
    new = op.new.encode("utf-8", "surrogateescape").removesuffix(b"\n")
    fresh = [line.removesuffix(b"\r") for line in new.split(b"\n")]
    if text.contents[at : at + len(fresh)] == fresh:
        return Found("exact", at, at + len(fresh), already=True)
    data = b"".join(line + text.line_end for line in fresh)
    return Found("exact", max(at - 1, 0), at, ((Hunk(text.starts[at], text.starts[at], data),),))


def _behind_scopes(text: Text, scopes: Sequence[str]) -> int | None:
    """The line behind the last scope line; None without scopes, or if one is not unique."""
    at: int | None = None
    for scope in scopes:
        sought = scope.encode("utf-8", "surrogateescape").strip(BLANKS)
        if not sought:
            continue
        start = at or 0
        there = [i for i in text.view(_stripped).where(sought) if i >= start]
        if len(there) != 1:
            return None
        at = there[0] + 1
    return at


def _stripped(lines: list[bytes]) -> list[bytes]:
    return [line.strip(BLANKS) for line in lines]


def _narrowed(
    text: Text, op: PatchHunk, behind: int | None, line: int | None
) -> Callable[[list[Chain]], list[Chain]]:
    def narrow(ways: list[Chain]) -> list[Chain]:
        if op.at_end:
            ways = [way for way in ways if way[-1].end == len(text.lines)]
        if behind is not None:
            ways = [way for way in ways if way[0].start >= behind]
        if line is not None and len(ways) > 1:
            stated = [way for way in ways if way[0].start + 1 == line]
            ways = stated if len(stated) == 1 else ways
        return ways

    return narrow
