"""How a person wants a response taken, as it is kept beside the claim until the verdict.

Whoever recovers the claim of a command that was killed, or decides again on one that is held, takes
of the response what the person chose, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from patchq.model.values import (  # fmt: skip
    Base,
    Edit,
)
from patchq.queue import Claim


def to_json(choice: Choice) -> Mapping[str, Any] | None:
    """What `of` makes the choice of again; None for a response that is taken as it says itself."""
    if choice == WHOLE:
        return None
    return {
        "edits": None if choice.edits is None else sorted(choice.edits),
        "left": dict(choice.left),
        "target": choice.target,
        "accepted": choice.accepted,
        "retries": choice.retries,
    }


def of(claim: Claim) -> Choice:
    """The choice that was recorded with the claim, or `WHOLE`."""
    report = claim.choice
    if report is None:
        return WHOLE
    edits = None if report["edits"] is None else frozenset(report["edits"])
    return Choice(**{**report, "edits": edits})


@dataclass(frozen=True, slots=True)
class Choice:
    """How a person wants a response taken, where that differs from what it says itself."""

    edits: frozenset[str] | None = None
    """The ids of the edits to take; None for all."""
    base: Base | None = None
    """What to resolve on, in place of what the response says of it."""
    target: str | None = None
    """The branch to land on, which was allowed when the batch came."""
    accepted: bool = False
    """A person has looked: nothing is left to propose."""
    dry_run: bool = False
    """Write no object."""
    left: Mapping[str, str | None] = field(default_factory=dict)
    """Why others are left out: their ids, and the edit that each needs and cannot have."""
    retries: str | None = None
    """The batch that is tried again."""

    def of(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Those of the edits that are to be taken."""
        return tuple(edit for edit in edits if self.edits is None or edit.id in self.edits)


WHOLE = Choice()
