"""A batch as it was planned, and what becomes of it with a model's help: two ways have one shape.

A way to correct takes a `PlannedBatch` and a `Questioner`, and returns a `Repair`, or None where
the batch stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.model.values import Correction, Edit, Plan, Tree
from patchq.plan import batch
from patchq.plan.targets import Rules


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Edits of the base `tree`, and the plan that they come to; `declared` as in `batch.plan`."""

    edits: Sequence[Edit]
    plan: Plan
    tree: Tree
    rules: Rules
    declared: bool = False

    def replanned(self, edits: Mapping[str, Edit]) -> PlannedBatch:
        """With these edits in the place of those of the same ids."""
        updated = tuple(edits.get(edit.id, edit) for edit in self.edits)
        plan = batch.plan(updated, self.tree, self.rules, declared=self.declared)
        return replace(self, edits=updated, plan=plan)


@dataclass(frozen=True, slots=True)
class Repair:
    """A batch that can be applied now, and what was corrected for that."""

    batch: PlannedBatch
    corrections: tuple[Correction, ...]
