"""`depends_on`: a batch comes after others, and is refused when one of them never lands.

In review mode it is proposed on top of those that wait for review, where these stand on each other:
one branch can begin at the end of one.  Else it is held until they have landed: in auto mode, and
where one of them is held itself, is for another target, or waits beside the others.

Who superseded a batch stands for it: the edits that were to come first come with the replacement.
A duplicate stands for its first delivery.  A batch that was reverted is on the target no more, so
what depends on it is refused like what depends on a discarded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.report import LANDED, OVER, has_commit
from patchq.core.model.values import Collision, Envelope, Problem, State
from patchq.gate.pipeline import stacks, traces
from patchq.gate.pipeline.ground import Ground
from patchq.gate.pipeline.stacks import Below

if TYPE_CHECKING:
    from patchq.gate.pipeline.progress import Aimed, Decision


def wait(aimed: Aimed) -> Aimed | Decision:
    """Have the batch stand on what it depends on, or hold it until that has landed; refuse it if
    that never will."""
    found = None if aimed.choice.ahead else _waits(aimed)
    if found is None:
        return aimed
    if isinstance(found, Below):
        return replace(aimed, tip=found.tip, on=found.id)
    return aimed.end("held" if found.severity == "warning" else "rejected", found)


def _waits(aimed: Aimed) -> Below | Problem | None:
    """What the batch is to stand on, what it waits for (a warning), or waits for in vain (an
    error); None when nothing.

    What it waits for in vain counts first, and there is no sense in waiting any longer.
    """
    header = aimed.header
    open = [id for id in header.depends_on if stacks.standing(aimed.world, id)[1] not in LANDED]
    if not open:
        return None
    if header.retries in open:
        return _takes_its_place(header.retries or "")
    circle = _circle(aimed)
    if circle:
        round = " -> ".join(circle)
        return _failed(circle[1], f"these batches wait for each other: {round}")
    waits = [_look_at(aimed, id) for id in open]
    error = next((problem for problem in waits if problem.severity == "error"), None)
    if error is None and _may_stand(aimed):
        return _footing(aimed, open)
    return error or waits[0]


def _may_stand(aimed: Aimed) -> bool:
    """Whether the batch is to be proposed, whatever comes of what it depends on."""
    return not aimed.choice.accepted and (aimed.mode == "review" or aimed.choice.stands)


def _footing(aimed: Aimed, open: Sequence[str]) -> Below | Problem | None:
    """The proposal that stands on all others that the batch depends on; else why it waits."""
    world = aimed.world
    found: list[Below] = []
    above: dict[str, set[str]] = {}
    for id in open:
        below = stacks.look(world, id, aimed.target)
        if below is None:  # a person has just merged it
            continue
        if not isinstance(below, Below):
            return _held(id, below)
        stack = stacks.under(world, below.report)
        if stack.why:
            return _held(id, f"{below.id} has lost what it stood on: {stack.why}")
        found.append(below)
        above[below.id] = {below.id, *stack.ids}
    for id in traces.replaced(world, aimed.id, aimed.header):
        if on := next((below for below, ids in above.items() if id in ids), None):
            return _takes_its_place(id, on)
    top = next((below for below in found if above[below.id] >= above.keys()), None)
    if top is None and found:
        names = ", ".join(below.id for below in found)
        return _held(found[0].id, f"{names} wait side by side, and a branch can stand on one")
    lacking = top and _not_there(aimed, top)
    return _held(lacking, f"{top.id} is not on top of it yet") if top and lacking else top


def _not_there(aimed: Aimed, below: Below) -> str | None:
    """A batch that has landed, which the batch depends on, and which the proposal has not yet."""
    for id in aimed.header.depends_on:
        report = aimed.world.queue.load(stacks.standing(aimed.world, id)[0])
        if report is None or report["state"] not in LANDED or not has_commit(report):
            continue
        if not traces.landing(report, aimed.world.repo, below.tip):
            return id
    return None


def held(ground: Ground) -> dict[str, dict[str, State | None]]:
    """The batches that are held for others: id -> each that has not landed, with its state."""
    found = {}
    for claim in ground.queue.held():
        named = _depends_on(claim.data)
        if claim.id and named:
            states = {other: stacks.standing(ground, other)[1] for other in named}
            found[claim.id] = {id: state for id, state in states.items() if state not in LANDED}
    return found


def _look_at(aimed: Aimed, id: str) -> Problem:
    """What a dependency that has not landed means."""
    world = aimed.world
    last, state = stacks.standing(world, id)
    why = f"{stacks.named(id, last)} is {state}" if state else f"no batch {last} is known"
    if state in OVER:
        return _failed(id, f"the batch depends on {id}, and {why}")
    waited = world.clock() - (aimed.claim.held_since or world.clock())
    if state is None and waited > world.config.queue.hold_seconds:
        return _failed(id, f"the batch depends on {id}, and {why} after {waited:.0f} s")
    return _held(id, why)


def _held(id: str, why: str) -> Problem:
    return Problem(
        "depends.failed",
        f"the batch waits for {id} to land: {why}",
        "nothing to send: it goes on by itself",
        severity="warning",
        conflicts_with=Collision(batch=id),
    )


def _circle(aimed: Aimed) -> list[str]:
    """The way from the batch over others that wait back to itself, both ends included; else
    nothing.  Only what is on the way is read: very many may be held."""
    before: dict[str, str] = {}
    front = [aimed.id]
    while front:
        id = front.pop()
        for named in aimed.header.depends_on if id == aimed.id else _needs(aimed.world, id):
            other = named if named == aimed.id else stacks.standing(aimed.world, named)[0]
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


def _takes_its_place(id: str, through: str | None = None) -> Problem:
    stands = "" if through in (None, id) else f"{through}, which stands on "
    return _failed(id, f"the batch depends on {stands}{id}, whose place it takes")


def _failed(id: str, message: str) -> Problem:
    return Problem(
        "depends.failed",
        message,
        "send the batch again once the other one has landed, or without depends_on",
        conflicts_with=Collision(batch=id),
    )
