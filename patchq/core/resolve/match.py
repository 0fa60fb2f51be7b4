"""The place of any edit that changes a part of a file."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.ops import (
    Anchored,
    InParagraph,
    InsertAt,
    PatchHunk,
    Replace,
    ReplaceText,
)
from patchq.core.resolve import anchors, characters, hunks, ladder
from patchq.core.resolve.ladder import Found, Missed, inserted
from patchq.core.resolve.levels import lines_of
from patchq.core.text.lines import Text

PartOp = Replace | ReplaceText | InParagraph | Anchored | InsertAt | PatchHunk


class Hints(Struct, frozen=True):
    """The file's path, the enabled levels, and the trust in stated lines.

    `lines_hold`: stated lines are trusted.
    """

    levels: Sequence[str]
    path: str
    lines_hold: bool = False


def match(text: Text, op: PartOp, hints: Hints) -> Found | Missed:
    r"""Return the place of `op` in `text`, or why it has none.

    A lone `\r` ends a line only where the quote is not found otherwise.
    """
    found = _match(text, op, hints)
    nowhere = isinstance(found, Missed) and found.why == "none"
    other = text.with_returns if nowhere and "line_endings" in hints.levels else None
    again = _match(other, op, hints) if other is not None else found
    if other is None or not isinstance(again, Found):
        return found
    first, last = other.starts[again.start], other.starts[again.end]
    start, end = text.line_at(first) - 1, text.line_at(max(last - 1, first))
    return replace(again, level="line_endings", start=start, end=end)


def _match(text: Text, op: PartOp, hints: Hints) -> Found | Missed:
    match op:
        case Replace():
            return ladder.resolve(text, op, hints.levels)
        case ReplaceText():
            return characters.resolve(text, op, hints.levels)
        case InParagraph():
            return characters.resolve_paragraphs(text, op)
        case Anchored():
            return anchors.resolve(text, op, hints.path)
        case InsertAt():
            if not 0 <= op.line <= len(text.lines):
                return Missed("none", detail=f"the file has {len(text.lines)} lines, not {op.line}")
            return inserted(text, op.line, lines_of(op.text))
        case PatchHunk():
            return hunks.resolve(text, [op], hints.levels, lines_hold=hints.lines_hold)[0]


def present(text: Text, op: PartOp, hints: Hints) -> Found | None:
    """Return the new text's only place, if the edit is already applied.

    The caller has found the old text in no place.
    """
    match op:
        case Replace(old, new) | PatchHunk(old, new) if old or isinstance(op, Replace):
            return ladder.present(text, Replace(old, new), hints.levels)
        case ReplaceText():
            return characters.present(text, op, hints.levels)
        case _:
            return None
