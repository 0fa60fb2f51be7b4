"""`depends_on`: a batch waits until others have landed, and is refused when one never will.

Who superseded a batch stands for it: the edits that were to come first come with the replacement.
A duplicate stands for its first delivery.  A batch that was reverted is on the target no more, so
what depends on it is refused like what depends on a discarded one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchq.formats.envelope.opening import open_response
from patchq.model.report import LANDED, OVER, REPLACED
from patchq.model.values import Collision, Envelope, Problem, State
from patchq.pipeline import traces
from patchq.pipeline.ground import Ground

if TYPE_CHECKING:
    from patchq.pipeline.progress import Aimed, Decision


def wait(aimed: Aimed) -> Aimed | Decision:
    """Hold the batch until those that it depends on have landed; refuse it if one never will."""
    problem = None if aimed.choice.ahead else _waits(aimed)
    if problem is None:
        return aimed
    return aimed.end("held" if problem.severity == "warning" else "rejected", problem)


def _waits(aimed: Aimed) -> Problem | None:
    """What the batch waits for (a warning) or waits for in vain (an error); None when nothing.

    What it waits for in vain counts first, and there is no sense in waiting any longer.
    """
    header = aimed.header
    open = [id for id in header.depends_on if _standing(aimed.world, id)[1] not in LANDED]
    if not open:
        return None
    if header.retries in open:
        return _failed(
            header.retries or "", f"the batch depends on {header.retries}, whose place it takes"
        )
    circle = _circle(aimed)
    if circle:
        round = " -> ".join(circle)
        return _failed(circle[1], f"these batches wait for each other: {round}")
    waits = [_look_at(aimed, id) for id in open]
    return next((problem for problem in waits if problem.severity == "error"), waits[0])


def held(ground: Ground) -> dict[str, dict[str, State | None]]:
    """The batches that are held for others: id -> each that has not landed, with its state."""
    found = {}
    for claim in ground.queue.held():
        named = _depends_on(claim.data)
        if claim.id and named:
            states = {other: _standing(ground, other)[1] for other in named}
            found[claim.id] = {id: state for id, state in states.items() if state not in LANDED}
    return found


def _look_at(aimed: Aimed, id: str) -> Problem:
    """What a dependency that has not landed means."""
    world = aimed.world
    last, state = _standing(world, id)
    name = id if last == id else f"{id}, whose place {last} took,"
    why = f"{name} is {state}" if state else f"no batch {last} is known"
    if state in OVER:
        return _failed(id, f"the batch depends on {id}, and {why}")
    waited = world.clock() - (aimed.claim.held_since or world.clock())
    if state is None and waited > world.config.queue.hold_seconds:
        return _failed(id, f"the batch depends on {id}, and {why} after {waited:.0f} s")
    return Problem(
        "depends.failed",
        f"the batch waits for {id} to land: {why}",
        "nothing to send: it goes on by itself",
        severity="warning",
        conflicts_with=Collision(batch=id),
    )


def _standing(ground: Ground, id: str) -> tuple[str, State | None]:
    """The batch that stands for this one now, and its state; None for one that is not known."""
    seen: set[str] = set()
    while id not in seen:
        seen.add(id)
        if report := ground.queue.load(id):
            state, other = report["state"], report["duplicate_of"]
        elif past := ground.queue.past(id):
            # What people did to it later, git alone knows.
            state, other = past.state, past.other
            state = state if state in REPLACED else traces.last_state(ground, id) or state
        else:
            return id, traces.last_state(ground, id)
        if state not in REPLACED:
            return id, state
        if other is None:  # everything was there already; or a report from before this was noted
            return id, "applied" if state == "duplicate" else "discarded"
        id = other
    return id, "discarded"


def _circle(aimed: Aimed) -> list[str]:
    """The way from the batch over others that wait back to itself, both ends included; else
    nothing.  Only what is on the way is read: very many may be held."""
    before: dict[str, str] = {}
    front = [aimed.id]
    while front:
        id = front.pop()
        for named in aimed.header.depends_on if id == aimed.id else _needs(aimed.world, id):
            other = named if named == aimed.id else _standing(aimed.world, named)[0]
            if other == aimed.id:
                way = [aimed.id]
                while id in before:
                    way.append(id)
                    id = before[id]
                return [aimed.id, *reversed(way)]
            if other not in before:
                before[other] = id
                front.append(other)
    return []


def _needs(ground: Ground, id: str) -> tuple[str, ...]:
    """What a batch waits for, if it is held."""
    report = ground.queue.load(id)
    return _depends_on(ground.queue.body(id) or b"") if report and report["state"] == "held" else ()


def _depends_on(data: bytes) -> tuple[str, ...]:
    opened = open_response(data)
    return opened.header.depends_on if isinstance(opened, Envelope) else ()


def _failed(id: str, message: str) -> Problem:
    return Problem(
        "depends.failed",
        message,
        "send the batch again once the other one has landed, or without depends_on",
        conflicts_with=Collision(batch=id),
    )
