"""What a response shows of files beside its edits: quotations, or something that would be lost.

A fence under a path quotes as often as it writes.  What stands in the file, before the edits or
behind them, takes nothing away if it is left where it is; anything else may be a change, so that
landing the rest would lose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from patchq.core.model.ops import Rename, Write
from patchq.core.model.values import Edit, FileChange, Plan, Problem, Quotation, Tree
from patchq.core.resolve.readings import levels, quoted_lines
from patchq.core.resolve.search import find
from patchq.core.text.lines import Text
from patchq.core.text.seen import named_fence, seen

_RUNGS = ("exact", "line_endings", "trailing_whitespace", "indentation")
_SHOWN = ("text", "console", "log", "output")
"""The languages of fences that hold what a file becomes that nobody keeps."""

Standing = Literal["whole", "inside", "edge"]
"""Whether a text is all that a file holds; or lines of it without the first and the last with text;
or with one of them."""


def doubts(
    quotations: Sequence[Quotation],
    edits: Iterable[Edit],
    plan: Plan,
    tree: Tree,
    ignored: Callable[[str], bool],
) -> list[Problem]:
    """The problems with what is no quotation; `ignored` tells whether git ignores a path."""
    edited = {
        path
        for edit in edits
        if not isinstance(edit.op, Write)
        for path in (edit.path, *([edit.op.to] if isinstance(edit.op, Rename) else []))
    }
    changes = {change.path: change for change in plan.changes}
    found = (
        _doubt(one, _texts(one.path, changes.get(one.path), tree), one.path in edited, ignored)
        for one in quotations
        if not (plan.refused and one.path in edited)  # the result may have it
    )
    return [problem for problem in found if problem]


def stands(text: Text, quote: str) -> Standing | None:
    """How the lines of `quote` stand in the text, but for their indentation and what ends them;
    None if they do not."""
    lines = quoted_lines(quote)
    filled = [i for i, line in enumerate(text.contents) if line.strip()]
    if not any(line.strip() for line in lines) or not filled:
        return None
    while not lines[0].strip():
        del lines[0]
    while not lines[-1].strip():
        del lines[-1]
    for level in levels(_RUNGS):
        starts = [start for start, _ in find(text, lines, level)]
        if not starts:
            continue
        ends = {(start <= filled[0], start + len(lines) > filled[-1]) for start in starts}
        if (True, True) in ends:
            return "whole"
        return "inside" if (False, False) in ends else "edge"
    return None


def _texts(path: str, change: FileChange | None, tree: Tree) -> list[Text]:
    """What the file holds before the edits, and behind them."""
    entry = tree.entry(path)
    there = tree.read(path) if entry and entry.kind == "file" else None
    if there is None and change is not None:
        there = change.before
    after = change.after if change else None
    return [Text(data) for data in (there, after) if data is not None]


def _doubt(
    quotation: Quotation, texts: Sequence[Text], edited: bool, ignored: Callable[[str], bool]
) -> Problem | None:
    """Why the quotation is none; None if it is one."""
    said = not texts and quotation.tie in ("sentence", "mention")
    if said and (quotation.language in _SHOWN or ignored(quotation.path)):
        return None
    quotes = [quotation.text]
    if quotation.tie == "comment":
        quotes.append(quotation.text.partition("\n")[2])
    for text in texts:
        for quote in quotes:
            standing = stands(text, quote)
            if standing in ("whole", "inside") or (standing and edited):
                return None
    partly = any(stands(text, quotation.text) for text in texts)
    what = seen(quotation.text, quotation.language)
    if partly:
        holds = f"is a part of {quotation.path} with its first or last line: is the rest to go?"
    elif what:
        holds = f"names {quotation.path}, and holds {what}"
    elif texts:
        holds = f"names {quotation.path}, which holds other lines"
    else:
        holds = f"names {quotation.path}, which does not exist"
    first = quotation.at[0]
    return Problem(
        "response.unreadable_edit",
        f"line {first}, column 1: beside the edits, the fence {holds}",
        "to write the file, put its path into the fence's info behind a colon, "
        f"{named_fence(quotation.path)}; to show something else, let no path stand in the fence's "
        "info, right above it or on its first line",
        line=first,
    )
