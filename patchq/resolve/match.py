"""One way to find the place of any edit that changes a part of a file.

Hunks of diffs and chunks of V4A patches are whole lines with hints about where they stand: the body
decides.  A scope line, the file's end and a stated line number only tell equal places apart;
nearness never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.model.ops import (
    Anchored,
    InContext,
    InParagraph,
    InsertAt,
    Occurrences,
    PatchHunk,
    Replace,
    ReplaceText,
)
from patchq.resolve import anchors, characters, ladder
from patchq.resolve.ladder import Found, Missed, inserted
from patchq.resolve.readings import lines_of, stripped
from patchq.resolve.search import Chain
from patchq.text.lines import BLANKS, Text

PartOp = (
    Replace | ReplaceText | Occurrences | InContext | InParagraph | Anchored | InsertAt | PatchHunk
)


@dataclass(frozen=True, slots=True)
class Hints:
    """What may decide besides the quote: the file's path, and whether stated lines are believed."""

    rungs: Sequence[str]
    path: str
    lines_hold: bool = False


def match(text: Text, op: PartOp, hints: Hints) -> Found | Missed:
    """The one place of `op` in `text`, or why there is none.  A lone `\\r` ends a line only where
    the quote stands nowhere otherwise."""
    found = _match(text, op, hints)
    if isinstance(found, Missed) and found.why == "none" and "line_endings" in hints.rungs:
        other = text.with_returns
        again = _match(other, op, hints) if other is not None else found
        if other is not None and isinstance(again, Found):
            start = text.line_at(other.starts[again.start]) - 1
            end = text.line_at(max(other.starts[again.end] - 1, other.starts[again.start]))
            return replace(again, rung="line_endings", start=start, end=end)
    return found


def _match(text: Text, op: PartOp, hints: Hints) -> Found | Missed:
    match op:
        case Replace():
            return ladder.resolve(text, op, hints.rungs)
        case ReplaceText() | Occurrences() | InContext():
            return characters.resolve(text, op, hints.rungs)
        case InParagraph():
            return characters.resolve_paragraphs(text, op)
        case Anchored():
            return anchors.resolve(text, op, hints.path)
        case InsertAt():
            if not 0 <= op.line <= len(text.lines):
                return Missed("none", detail=f"the file has {len(text.lines)} lines, not {op.line}")
            return inserted(text, op.line, lines_of(op.text))
        case PatchHunk():
            return _hunk(text, op, hints)


def present(text: Text, op: PartOp, hints: Hints) -> Found | None:
    """Where the edit is there already, its old text being nowhere."""
    match op:
        case Replace(old, new) | PatchHunk(old, new) if old or isinstance(op, Replace):
            return ladder.present(text, Replace(old, new), hints.rungs)
        case ReplaceText() | Occurrences() | InContext():
            return characters.present(text, op, hints.rungs)
        case _:
            return None


# ---------------------------------------------------------------- hunks


def _hunk(text: Text, op: PatchHunk, hints: Hints) -> Found | Missed:
    behind = _behind_scopes(text, op.scopes)
    if not op.old:
        # Lines without a neighbour: behind their scope, at the file's end, or in an empty one.
        if not op.scopes and (op.at_end or not text.lines):
            behind = len(text.lines)
        if behind is None:
            return Missed("none", detail="it adds lines and quotes none")
        return inserted(text, behind, lines_of(op.new))

    def narrow(ways: list[Chain]) -> list[Chain]:
        if op.at_end:
            ways = [way for way in ways if way[-1].end == len(text.lines)]
        if behind is not None:
            ways = [way for way in ways if way[0].start >= behind]
        if hints.lines_hold and op.line is not None and len(ways) > 1:
            stated = [way for way in ways if way[0].start + 1 == op.line]
            ways = stated if len(stated) == 1 else ways
        return ways

    found = ladder.resolve(text, Replace(op.old, op.new), hints.rungs, narrow)
    if isinstance(found, Missed) and found.why == "none" and op.bare:
        return ladder.resolve(text, Replace(*op.bare), hints.rungs, narrow)
    return found


def _behind_scopes(text: Text, scopes: Sequence[str]) -> int | None:
    """The line behind the last scope line; None without scopes, or if one is not unique."""
    at: int | None = None
    for scope in scopes:
        sought = scope.encode("utf-8", "surrogateescape").strip(BLANKS)
        if not sought:
            continue
        there = [i for i in text.view(stripped).where(sought) if i >= (at or 0)]
        if len(there) != 1:
            return None
        at = there[0] + 1
    return at
