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

from msgspec.structs import replace

from patchq.core.model.values import Collision, Problem
from patchq.gate.pipeline import stacks, traces
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.progress import EndedEarly, Response, Target
from patchq.gate.pipeline.stacks import Below
from patchq.gate.report.schema import LANDED, OVER, has_commit


def wait(response: Response, target: Target) -> Target:
    """Return the target, with the proposal that the batch is to stand on.

    A batch is held until what it depends on has landed, and refused if that never will.
    """
    found = None if response.choice.ahead else _waits(response, target)
    if found is None:
        return target
    if isinstance(found, Below):
        return replace(target, tip=found.tip, on=found.id)
    raise EndedEarly("held" if found.severity == "warning" else "rejected", found)


def _waits(response: Response, target: Target) -> Below | Problem | None:
    """Return the proposal to stand on, or why the batch waits (a warning) or waits in vain.

    What it waits for in vain counts first, and there is no sense in waiting any longer.
    """
    header, session = response.header, response.session
    open = [id for id in header.depends_on if stacks.standing(session, id)[1] not in LANDED]
    if not open:
        return None
    if header.retries in open:
        return _takes_its_place(header.retries or "")
    circle = _circle(response)
    if circle:
        round = " -> ".join(circle)
        return _failed(circle[1], f"these batches wait for each other: {round}")
    waits = [_look_at(response, id) for id in open]
    error = next((problem for problem in waits if problem.severity == "error"), None)
    if error is None and _may_stand(response):
        return _footing(response, target, open)
    return error or waits[0]


def _may_stand(response: Response) -> bool:
    """Return true if the batch is to be proposed, whatever comes of what it depends on."""
    choice = response.choice
    return not choice.accepted and (response.mode == "review" or choice.stands)


def _footing(response: Response, target: Target, open: Sequence[str]) -> Below | Problem | None:
    """Return the proposal on top of all that the batch depends on; else why it waits."""
    session = response.session
    found: list[Below] = []
    above: dict[str, set[str]] = {}
    for id in open:
        below = stacks.look(session, id, target.branch)
        if below is None:  # a person has just merged it
            continue
        if not isinstance(below, Below):
            return _held(id, below)
        stack = stacks.under(session, below.report)
        if stack.why:
            return _held(id, f"{below.id} has lost what it stood on: {stack.why}")
        found.append(below)
        above[below.id] = {below.id, *stack.ids}
    for id in traces.replaced(session, response.id, response.header):
        if on := next((below for below, ids in above.items() if id in ids), None):
            return _takes_its_place(id, on)
    top = next((below for below in found if above[below.id] >= above.keys()), None)
    if top is None and found:
        names = ", ".join(below.id for below in found)
        return _held(found[0].id, f"{names} wait side by side, and a branch can stand on one")
    lacking = top and _not_there(response, top)
    return _held(lacking, f"{top.id} is not on top of it yet") if top and lacking else top


def _not_there(response: Response, below: Below) -> str | None:
    """Return a batch that it depends on, which has landed and which the proposal lacks."""
    for id in response.header.depends_on:
        report = response.session.queue.load(stacks.standing(response.session, id)[0])
        if report is None or report.state not in LANDED or not has_commit(report):
            continue
        if not traces.landing(report, response.session.repo, below.tip):
            return id
    return None


def _look_at(response: Response, id: str) -> Problem:
    """Return what a dependency that has not landed means."""
    session = response.session
    last, state = stacks.standing(session, id)
    why = f"{stacks.named(id, last)} is {state}" if state else f"no batch {last} is known"
    if state in OVER:
        return _failed(id, f"the batch depends on {id}, and {why}")
    waited = session.clock() - (response.claim.held_since or session.clock())
    if state is None and waited > session.config.queue.hold_seconds:
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


def _circle(response: Response) -> list[str]:
    """Return the way from the batch over others back to itself, both ends included.

    Empty if there is none.  Only what is on the way is read: very many may be held.
    """
    session, before = response.session, dict[str, str]()
    front = [response.id]
    while front:
        id = front.pop()
        for named in response.header.depends_on if id == response.id else _needs(session, id):
            other = named if named == response.id else stacks.standing(session, named)[0]
            if other == response.id:
                way = [response.id]
                while id in before:
                    way.append(id)
                    id = before[id]
                return [response.id, *reversed(way)]
            if other not in before:
                before[other] = id
                front.append(other)
    return []


def _needs(context: RepoContext, id: str) -> tuple[str, ...]:
    """Return what a batch waits for, if it is held."""
    report = context.queue.load(id)
    return (
        stacks.depends_on(context.queue.body(id) or b"")
        if report and report.state == "held"
        else ()
    )


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
