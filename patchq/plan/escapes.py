r"""New text that a model escaped once too often, told from what comes of it.

Where a quote is found only with its escapes undone, both halves lose theirs on the way (see
`resolve.readings`).  Two kinds of new text have no quote that could tell: the files that the same
response creates, and a replacement that alone is escaped, which shows only in a file that does not
parse with `\n` and `\"` in its lines and does without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from patchq.model.ops import Create, InContext, Occurrences, Op, Replace, ReplaceText
from patchq.model.values import Edit, FileChange, Plan
from patchq.plan import syntax
from patchq.resolve.readings import is_escaped_line, unescape, unescape_text

RUNG = "unescaped"
_MOST_TRIED = 8
_ESCAPED_QUOTE, _BARE_QUOTE = re.compile(r"\\[\"]"), re.compile(r"(?<!\\)[\"]")

Planner = Callable[[Sequence[Edit]], Plan]


def settled(edits: Sequence[Edit], plan: Planner, judged: Callable[[str], bool]) -> Plan:
    """The plan of the edits, as `plan` makes it, with the escapes undone that are none of the text.

    `judged` tells of a path whether its file has to parse.
    """
    planned = plan(edits)
    if any(outcome.match == RUNG for outcome in planned.edits):
        edits = [_plain_file(edit) for edit in edits]
        planned = plan(edits)
    for change in planned.changes:
        touched = [edit for edit in edits if edit.path in (change.path, change.renamed_from)]
        doubtful = [edit for edit in touched if _plain(edit) is not edit]
        if doubtful and judged(change.path) and syntax.check(change):
            edits, planned = _corrected(edits, doubtful, change, plan) or (edits, planned)
    return planned


def _corrected(
    edits: Sequence[Edit], doubtful: Sequence[Edit], change: FileChange, plan: Planner
) -> tuple[Sequence[Edit], Plan] | None:
    """The plan with one of the edits unescaped, the only one that makes the file parse; else with
    all of them, if that does."""
    alone = [[edit] for edit in doubtful] if 1 < len(doubtful) <= _MOST_TRIED else []
    good = [result for suspects in alone if (result := _parsing(edits, suspects, change, plan))]
    if not good:
        return _parsing(edits, doubtful, change, plan)
    return good[0] if len(good) == 1 else None


def _parsing(
    edits: Sequence[Edit], suspects: Sequence[Edit], change: FileChange, plan: Planner
) -> tuple[Sequence[Edit], Plan] | None:
    """The plan with the chosen edits unescaped, if the file parses then."""
    corrected = [_plain(edit) if edit in suspects else edit for edit in edits]
    planned = plan(corrected)
    after = next((other for other in planned.changes if other.path == change.path), None)
    if planned.refused or after is None or syntax.check(after):
        return None
    ids = {edit.id for edit in suspects}
    outcomes = tuple(replace(o, match=RUNG) if o.id in ids else o for o in planned.edits)
    return corrected, replace(planned, edits=outcomes)


def _plain_file(edit: Edit) -> Edit:
    op = edit.op
    if isinstance(op, Create) and is_escaped_line(op.text):
        return replace(edit, op=Create(unescape_text(op.text)))
    return edit


def _plain(edit: Edit) -> Edit:
    """The edit with its new text unescaped; itself where nothing is escaped, or not every quote."""
    op: Op = edit.op
    if not isinstance(op, Replace | ReplaceText | Occurrences | InContext) or "\\" not in op.new:
        return edit
    new = _unescaped(op)
    if new == op.new or (_ESCAPED_QUOTE.search(op.new) and _BARE_QUOTE.search(op.new)):
        return edit
    return replace(edit, op=replace(op, new=new))


def _unescaped(op: Replace | ReplaceText | Occurrences | InContext) -> str:
    if isinstance(op, Replace):
        return unescape_text(op.new) if op.new else op.new
    return unescape(op.new.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
