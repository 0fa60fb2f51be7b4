"""One way to find the place of any edit that changes a part of a file."""

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
from patchq.model.values import Hunk
from patchq.resolve import anchors, characters, hunks, ladder, paragraphs
from patchq.resolve.ladder import Found, Missed
from patchq.text.lines import Text

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
            return paragraphs.resolve(text, op)
        case Anchored():
            return anchors.resolve(text, op, hints.path)
        case InsertAt():
            return _inserted(text, op)
        case PatchHunk():
            line = op.line if hints.lines_hold else None
            return hunks.resolve(text, op, hints.rungs, line)


def taken(text: Text, op: PartOp, hints: Hints) -> Found | None:
    """Where the edit is there already, its old text being nowhere."""
    match op:
        case Replace():
            return ladder.taken_place(text, op, hints.rungs)
        case ReplaceText() | Occurrences() | InContext():
            return characters.taken_place(text, op, hints.rungs)
        case PatchHunk():
            return hunks.taken_place(text, op, hints.rungs)
        case _:
            return None


def _inserted(text: Text, op: InsertAt) -> Found | Missed:
    if not 0 <= op.line <= len(text.lines):
        return Missed("none", detail=f"the file has {len(text.lines)} lines, not {op.line}")
    fresh = [line.removesuffix("\r") for line in op.text.removesuffix("\n").split("\n")]
    lines = [line.encode("utf-8", "surrogateescape") for line in fresh]
    if text.contents[op.line : op.line + len(lines)] == lines:
        return Found("exact", op.line, op.line + len(lines), already=True)
    data = b"".join(line + text.line_end for line in lines)
    at = text.starts[op.line]
    return Found("exact", max(op.line - 1, 0), op.line, ((Hunk(at, at, data),),))
