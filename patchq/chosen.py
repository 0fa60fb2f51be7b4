"""How a person wants a response taken, as it is kept beside the claim until the verdict.

Whoever recovers the claim of a command that was killed, or decides again on one that is held, takes
of the response what the person chose, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.queue import Claim
from patchq.world import WHOLE, Choice


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
    told = claim.choice
    if told is None:
        return WHOLE
    edits = None if told["edits"] is None else frozenset(told["edits"])
    return Choice(**{**told, "edits": edits})
