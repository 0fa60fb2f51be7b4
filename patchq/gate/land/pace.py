"""Responses that wait while their branch rests, since a person has it checked out.

Git does not wait for `index.lock`, so a commit fails that meets a landing.  What comes for such a
branch within a second of one lands as one group when that is over; all else goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from patchq.gate.pipeline.lane import lane_of
from patchq.gate.pipeline.world import World
from patchq.gate.queue import Claim


class Pace:
    """The waiting claims of one process, with the branches they are for."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, Claim]] = []

    def due(self, fresh: Sequence[Claim], world: World, most: int) -> list[Claim]:
        """The claims to decide on now, the oldest first; the others wait.  With `most` of them a
        group is full, so they are decided on while the branch rests."""
        resting = world.branches.resting()
        if not self._waiting and not resting:
            return list(fresh)
        lanes = [(_lane(claim, world), claim) for claim in fresh]
        claims = [*self._waiting, *lanes]
        full = len(claims) >= most
        self._waiting = [] if full else [one for one in claims if one[0] in resting]
        return [claim for lane, claim in claims if full or lane not in resting]

    def __len__(self) -> int:
        return len(self._waiting)

    def pause(self, world: World) -> float:
        """Seconds until one of the waiting claims is due."""
        resting = world.branches.resting() if self._waiting else {}
        return min((resting.get(lane, 0.0) for lane, _ in self._waiting), default=inf)

    def drop(self) -> list[Claim]:
        """The waiting claims, which wait here no more."""
        claims, self._waiting = [claim for _, claim in self._waiting], []
        return claims


def _lane(claim: Claim, world: World) -> str:
    """The branch; none for a request, which has no answer yet."""
    return "" if claim.request else lane_of(claim.data, world.target, world.config.targets)
