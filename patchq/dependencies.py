"""`depends_on`: a batch waits until others have landed, and is refused when one never will."""

from __future__ import annotations

from patchq.envelope import open_response
from patchq.model import Collision, Envelope, Problem
from patchq.world import Draft, World

_OVER = ("rejected", "discarded", "superseded", "reverted")


def check(draft: Draft) -> Problem | None:
    """What the batch waits for (a warning) or waits for in vain (an error); None when nothing."""
    for id in draft.header.depends_on:
        state = _state(draft.world, id)
        if state in ("applied", "accepted"):
            continue
        why = f"{id} is {state}" if state else f"no batch {id} is known"
        since = draft.claim.held_since or draft.world.clock()
        waited = draft.world.clock() - since
        if id in _waiting_for(draft.world, id, draft.id):
            return _failed(id, f"batch {id} and this one wait for each other")
        if state in _OVER:
            return _failed(id, f"the batch depends on {id}, and {why}")
        if state is None and waited > draft.world.config.queue.hold_seconds:
            return _failed(id, f"the batch depends on {id}, and {why} after {waited:.0f} s")
        return Problem(
            "depends.failed",
            f"the batch waits for {id} to land: {why}",
            "nothing to send: it goes on by itself",
            severity="warning",
            conflicts_with=Collision(batch=id),
        )
    return None


def _state(world: World, id: str) -> str | None:
    """The state of a batch; that of the first delivery for a duplicate."""
    told = world.queue.load(id)
    if told is None:
        return None
    if told["state"] == "duplicate" and told["duplicate_of"]:
        return _state(world, told["duplicate_of"])
    return "applied" if told["state"] == "duplicate" else str(told["state"])


def _waiting_for(world: World, start: str, own: str) -> set[str]:
    """`start` if it waits, over however many others, for the batch `own`; else nothing."""
    needs: dict[str, tuple[str, ...]] = {}
    for claim in world.queue.held():
        opened = open_response(claim.data)
        if claim.id and isinstance(opened, Envelope):
            needs[claim.id] = opened.header.depends_on
    reached, front = set(), [start]
    while front:
        id = front.pop()
        if id == own:
            return {start}
        if id not in reached:
            reached.add(id)
            front += needs.get(id, ())
    return set()


def _failed(id: str, message: str) -> Problem:
    return Problem(
        "depends.failed",
        message,
        "send the batch again once the other one has landed, or without depends_on",
        conflicts_with=Collision(batch=id),
    )
