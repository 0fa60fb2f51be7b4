"""The edits of a proposal that a person takes, and what needs those that are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from patchq.core.model.values import Edit, EditOutcome
from patchq.core.plan.files import outcome
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import IDLE

Edits = Sequence[EditOutcome]  # the entries of a report's `edits`


class Selection(Struct, frozen=True):
    """The ids of the edits to take, and of those left out with the one that each needs and cannot
    have (None: it was left out by name)."""

    taken: frozenset[str]
    left: Mapping[str, str | None] = field(default_factory=dict)


def select(edits: Edits, only: frozenset[str] | None, without: frozenset[str]) -> Selection:
    """Return the edits of `only` with those they need, or all but `without` and dependents.

    Raises `UsageError` for ids that there are not, and where nothing is left.
    """
    needs = {edit.id: set(edit.needs) for edit in edits}
    unknown = sorted((set(only or ()) | without) - needs.keys())
    if unknown:
        raise UsageError(
            f"the change has no edit {', '.join(unknown)}",
            f"its edits: {', '.join(needs) or 'none could be read'}",
        )
    if only is not None:
        selected, more = set[str](), list(only)
        while more:
            edit = more.pop()
            if edit not in selected:
                selected.add(edit)
                more += needs[edit]
        left: dict[str, str | None] = dict.fromkeys(needs.keys() - selected)
    else:
        left = dict.fromkeys(without)
        while more_left := _in_need(edits, left):
            left |= more_left
    if not needs.keys() - left.keys():
        raise UsageError("no edit would be left", "to take none of them, `patchq discard` it")
    return Selection(frozenset(needs.keys() - left.keys()), left)


def _in_need(edits: Edits, left: Collection[str]) -> dict[str, str]:
    """Return the other edits that need one of those left out, with that one.

    Edits that need one of these count too, if they come later.
    """
    more: dict[str, str] = {}
    for edit in edits:
        needs = [need for need in edit.needs if need in left]
        needs = needs or [need for need in edit.needs if need in more]
        if needs and edit.id not in left:
            more[edit.id] = needs[-1]
    return more


def with_left_out(
    done: Sequence[EditOutcome],
    edits: Sequence[Edit],
    taken: Collection[str] | None,
    left: Mapping[str, str | None],
) -> tuple[EditOutcome, ...]:
    """Return the outcomes of the edits `taken` (None: all), with the others between them."""
    if taken is None:
        return tuple(done)
    outcomes = iter(done)
    return tuple(
        next(outcomes)
        if edit.id in taken
        else outcome(edit, "cancelled" if left.get(edit.id) else "skipped", left.get(edit.id))
        for edit in edits
    )


def brought_back(before: Edits, now: Edits) -> list[str]:
    """Return the edits that count only now, as those before them are left out."""
    done = {edit.id for edit in now if edit.state == "applied"}
    back = {edit.id for edit in before if edit.state in IDLE} & done
    return sorted(back - {edit.id for edit in before if edit.state not in IDLE})


def taken_along(before: Edits, now: Edits) -> list[tuple[str, str]]:
    """Return the edits that do not count any more, each with the missing one that it needs."""
    counted = {edit.id for edit in before if edit.state not in IDLE}
    return [
        (edit.id, edit.cancelled_by)
        for edit in now
        if edit.state == "cancelled" and edit.cancelled_by and edit.id in counted
    ]
