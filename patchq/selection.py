"""The edits of a proposal that a person takes, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from patchq.errors import UsageError

Edits = Sequence[Mapping[str, Any]]
"""The entries of a report's `edits`."""


def select(edits: Edits, only: frozenset[str] | None, without: frozenset[str]) -> frozenset[str]:
    """The ids of the edits to take: those of `only` with what they need, or all but `without` and
    what needs them.  Raises `UsageError` for ids that there are not, and where nothing is left."""
    needs = {edit["id"]: set(edit["needs"]) for edit in edits}
    unknown = sorted((set(only or ()) | without) - needs.keys())
    if unknown:
        raise UsageError(
            f"the batch has no edit {', '.join(unknown)}", f"its edits: {', '.join(needs)}"
        )
    if only is not None:
        chosen = set(only)
        while missing := {need for edit in chosen for need in needs[edit]} - chosen:
            chosen |= missing
    else:
        left = set(without)
        while more := {edit for edit, wanted in needs.items() if wanted & left} - left:
            left |= more
        chosen = needs.keys() - left
    if not chosen:
        raise UsageError("no edit would be left", "to take none of them, `patchq discard` it")
    return frozenset(chosen)


def merged(edits: Edits, taken: Edits, without: frozenset[str]) -> list[dict[str, Any]]:
    """All edits again: those that were `taken` as they are now, the others as left out."""
    now = {edit["id"]: dict(edit) for edit in taken}
    return [now.get(edit["id"]) or _left_out(edit, now.keys(), without) for edit in edits]


def _left_out(
    edit: Mapping[str, Any], taken: Collection[str], without: frozenset[str]
) -> dict[str, Any]:
    if not without or edit["id"] in without:
        return {**edit, "state": "skipped"}
    cause = next(need for need in edit["needs"] if need not in taken)
    return {**edit, "state": "cancelled", "cancelled_by": cause}
