"""The two readings of a batch, and which of them is meant.

On the base, every edit is where its quote is; only one that has no place there is
sought on the text as the edits before it leave it.  In sequence, an edit may as well be where it
touches what an edit before it wrote, and a call wherever its quote is the only one left.  If one
reading holds, it is meant.  If both do and differ, calls are meant in sequence, for so do their
tools; what else a response holds is refused.

The second reading is made only where an earlier edit can meet a later quote: most responses are
read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from patchq.core.model.ops import (
    InParagraph,
    InsertAt,
    ReplaceText,
)
from patchq.core.model.values import Collision, Edit, EditOutcome, ErrorProblem, Plan
from patchq.core.plan.edited_text import changed_ranges
from patchq.core.plan.files import File
from patchq.core.resolve.ladder import Found, Missed
from patchq.core.resolve.match import PartOp
from patchq.core.text.quote import line_words

_LITERAL = ("exact", "line_endings")  # the levels that leave no other place for a quote
Order = Literal["base", "sequence"]


class BatchReading(Struct, frozen=True):
    """Plan of a batch in one order.

    `meets` says that the other order may give something else.  `followed` are the edits placed in
    text that others wrote although they have a place on the base, each with one of those others.
    `barred` says that a call has its one place here, and that what it writes there is not certain.
    """

    plan: Plan
    meets: bool = False
    followed: Mapping[str, str] = field(default_factory=dict)
    barred: bool = False


def meant(edits: Sequence[Edit], read: Callable[[Order, bool], BatchReading]) -> Plan:
    """Return the plan of the intended reading, refused if none is certain.

    `read` makes the reading in an order, and is told whether it is the first that is tried.
    """
    called = all(edit.called for edit in edits)
    first = read("sequence" if called else "base", True)
    if not first.meets or (called and (first.barred or not first.plan.refused)):
        return first.plan
    second = read("base" if called else "sequence", False)
    if second.plan.refused:
        return first.plan
    if first.plan.refused:
        return second.plan
    if first.plan.changes == second.plan.changes or not second.followed:
        return first.plan
    return _undecided(first.plan, second)


def _undecided(on_base: Plan, in_sequence: BatchReading) -> Plan:
    """Return the refused plan of a batch with two meanings."""
    later, earlier = next(iter(in_sequence.followed.items()))
    outcome = next(outcome for outcome in on_base.edits if outcome.id == later)
    lines = outcome.lines or (1, 1)
    where = line_words(lines)
    problem = ErrorProblem(
        "conflict.order",
        f"edits {earlier} and {later} can be read in two ways: on the base, {later} changes "
        f"{where} of {outcome.path}; after {earlier}, it changes what {earlier} writes",
        "send one edit for all that shall become of these lines, or quote more of them, so that "
        "the text is either in the file or in what the edit before writes",
        edit=later,
        path=outcome.path,
        line=lines[0],
        conflicts_with=Collision(edit=earlier, path=outcome.path),
    )
    return Plan(
        (),
        tuple(_idle(outcome, later) for outcome in on_base.edits),
        (*on_base.errors, problem),
        on_base.warnings,
    )


def _idle(outcome: EditOutcome, failed: str) -> EditOutcome:
    if outcome.id == failed:
        return replace(outcome, state="failed")
    return replace(outcome, state="ready") if outcome.state == "applied" else outcome


def may_follow(edit: Edit, op: PartOp, file: File, base: Found | Missed, meaning: int) -> bool:
    """Return True if the edit may have another place when edits apply in sequence."""
    if not file.edited.patches:
        return False
    if meaning in file.placed or meaning in file.folded:
        return False
    if isinstance(op, InsertAt):
        return edit.called
    if isinstance(op, ReplaceText) and op.at is not None:
        return False
    if isinstance(base, Missed):
        return edit.called and base.why in ("ambiguous", "count")
    if base.already:
        return False
    disturbed = file.edited.disturbs(*file.text.span(base.start, base.end))
    if disturbed and not base.hunks:
        return True
    if edit.called and file.edited.collides(changed_ranges(edit, base, meaning)):
        return True
    return disturbed or base.level not in _LITERAL or means_all(op)


def means_all(op: PartOp) -> bool:
    """Return True if the edit means every place, so that further ones count."""
    if isinstance(op, ReplaceText):
        return op.count != 1
    return isinstance(op, InParagraph) and op.every
