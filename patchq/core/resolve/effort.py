"""A budget of steps for explaining missed edits.

It needs no clock, so that the same response always gets the same report.

A step is about what comparing a line with another one takes; a million of them take well under a
second.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

STEPS = 3_000_000
"""Of one reading of a batch: a fraction of the two seconds that requirement A10 allows."""
PER_EDIT = 300
BYTES_A_STEP = 500
"""So many are searched in the time of a step."""


@dataclass(slots=True)
class Effort:
    """The steps that are left."""

    left: int = STEPS
    paid: set[Hashable] = field(default_factory=set)

    def spend(self, steps: int) -> bool:
        """Take so many; True if any were left."""
        some = self.left > 0
        self.left -= steps
        return some

    def spend_once(self, key: Hashable, steps: int) -> bool:
        """Take the steps of work whose result is kept, the first time; True if any were left."""
        if key not in self.paid:
            self.paid.add(key)
            return self.spend(steps)
        return self.left > 0
