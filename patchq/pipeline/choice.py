"""How a person wants a response taken, as it is kept beside the claim until the verdict.

Whoever recovers the claim of a command that was killed, or decides again on one that is held, takes
of the response what the person chose, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from patchq.model.values import Base, Edit
from patchq.queue import Claim


@dataclass(frozen=True, slots=True)
class Choice:
    """How a person wants a response taken, where that differs from what it says itself.

    Where nobody chose anything, `None` stands for it.
    """

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

    def among(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Those of the edits that are to be taken."""
        return tuple(edit for edit in edits if self.edits is None or edit.id in self.edits)

    def to_json(self) -> Mapping[str, Any]:
        """What `recorded` makes the choice of again; its base and a dry run are not kept."""
        return {
            "edits": None if self.edits is None else sorted(self.edits),
            "left": dict(self.left),
            "target": self.target,
            "accepted": self.accepted,
            "retries": self.retries,
        }


def recorded(claim: Claim) -> Choice | None:
    """The choice that was recorded with the claim, if one was."""
    if claim.choice is None:
        return None
    edits = claim.choice["edits"]
    return Choice(**{**claim.choice, "edits": None if edits is None else frozenset(edits)})
