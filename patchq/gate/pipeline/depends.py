"""`depends_on`, and the stacks that it makes: proposals that are built on each other.

A batch comes after others, and is refused when one of them never lands.  In review mode it is
proposed on top of those that wait for review, where these stand on each other: one branch can begin
at the end of one.  Else it is held until they have landed: in auto mode, and where one of them is
held itself, is for another target, or waits beside the others.

The proposal below another one is noted in its report (`stands_on`), and looked at anew whenever
that matters: the batch below may have landed, been replaced, changed by a person or taken away, by
patchq or by plain git.  A batch that superseded another one takes its place, and so does the
first delivery that of its duplicates.  A reverted batch is on the target no more, so what depends
on it is refused like what depends on a discarded one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.formats.envelope.front_matter import header_of
from patchq.core.model.names import batch_id
from patchq.core.model.values import Collision, Header, Problem, State
from patchq.gate.git import records
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import (
    LANDED,
    OVER,
    REPLACED,
    WAITING,
    CommittedReport,
    Report,
    has_commit,
)

if TYPE_CHECKING:  # who only looks imports nothing that decides
    from patchq.gate.pipeline.progress import Response

# ---------------------------------------------------------------- successors


def _state_of(context: RepoContext, id: str) -> tuple[State | None, str | None]:
    if report := context.queue.load(id):
        return report.state, report.duplicate_of
    past = context.queue.past(id)
    return history.last_state(context, id), past.other if past else None


def standing(
    context: RepoContext, id: str, through: Collection[State] = REPLACED
) -> tuple[str, State | None]:
    """Return the id and state of the batch's last successor.

    `through` are the states in which a batch has one.  The state is None if it is not known.
    """
    seen: set[str] = set()
    while id not in seen:
        seen.add(id)
        state, other = _state_of(context, id)
        if state is None or state not in through:
            return id, state
        if other is None:  # everything was there already
            return id, "applied" if state == "duplicate" else "discarded"
        id = other
    return id, "discarded"


def replaced(context: RepoContext, new: str, header: Header) -> list[str]:
    """Return the waiting batches whose place a response takes as batch `new`.

    Only `retries: ID`, or the front matter's own `id` of a waiting batch by the same `agent`, does.
    An agent that sends the same `id` a third time means its second try, which goes by `<id>-2`.
    """
    found = []
    retried = context.queue.load(header.retries) if header.retries else None
    if header.retries and retried and retried.state in WAITING:
        found.append(header.retries)
    if header.id and header.agent:
        last, _ = standing(context, batch_id(header.id), {"superseded"})
        report = context.queue.load(last)
        if report and report.state in WAITING and report.agent == header.agent:
            found.append(last)
    return [id for id in dict.fromkeys(found) if id != new]


def sent_back(context: RepoContext, new: str, header: Header) -> Report | None:
    """Return the report of the reviewed proposal that the batch `new` answers."""
    reports = filter(None, map(context.queue.load, replaced(context, new, header)))
    return next((one for one in reports if one.review), None)


# ---------------------------------------------------------------- stacks


class Below(Struct, frozen=True):
    """A proposal to build on, and the tip (hex) of its branch."""

    report: CommittedReport
    tip: str

    @property
    def id(self) -> str:
        return self.report.id


class Stack(Struct, frozen=True):
    """The proposals below one, nearest first, and the commit (hex) to build on.

    The commit is of the batch `on`, or of the target.  Without a commit there is nothing to build
    on, and `why` says so.
    """

    below: tuple[Below, ...] = ()
    on: str | None = None
    commit: str | None = None
    why: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.below)


def held(context: RepoContext) -> dict[str, dict[str, State | None]]:
    """Return the batches that are held for others: id -> each open one, with its state."""
    found = {}
    for claim in context.queue.held():
        named = header_of(claim.data).depends_on
        if claim.id and named:
            states = {other: standing(context, other)[1] for other in named}
            found[claim.id] = {id: state for id, state in states.items() if state not in LANDED}
    return found


def with_successor(id: str, last: str) -> str:
    return id if last == id else f"{id}, whose place {last} took,"


def proposal_in_place_of(context: RepoContext, id: str, target: str) -> Below | str | None:
    """Return the proposal now in the batch's place, or why there is none.

    None where it is on the target already.
    """
    last, state = standing(context, id)
    report = context.queue.load(last)
    if report is not None and state == "proposed":
        state = history.observe(context, report).state
    if state in LANDED:
        return None
    name, tip = with_successor(id, last), context.branches.tip(records.branch(last))
    if report is None or state != "proposed" or tip is None or not has_commit(report):
        return f"{name} is {state}" if state else f"no change {last} is known"
    if report.target != target:
        return f"{name} waits for review on {report.target}, and this change is for {target}"
    return Below(report, tip)


def under(context: RepoContext, report: Report) -> Stack:
    """Return the proposals below one, and its place, as the repository shows them now."""
    found: list[Below] = []
    top, why, on = report, "", report.stands_on
    while on is not None and not why:
        below = proposal_in_place_of(context, on.batch, top.target or "")
        if below is None:
            break
        if not isinstance(below, Below):
            why = below
        elif below.id in (top.id, *(one.id for one in found)):
            why = f"{below.id} is on top of {report.id} in turn"
        else:
            found.append(below)
            report, on = below.report, below.report.stands_on
    if not found:
        lost = on.batch if on and why else None
        return Stack((), lost, None if why else context.branches.tip(top.target or ""), why)
    first = found[0]
    why = why and f"{first.id}, below it, lost its own place: {why}"
    return Stack(tuple(found), first.id, None if why else first.tip, why)


AnyReport = TypeVar("AnyReport", bound=Report)


def in_order(reports: Iterable[AnyReport]) -> list[AnyReport]:
    """Return the reports with each stack together, from the bottom up."""
    known = {report.id: (rank, report) for rank, report in enumerate(reports)}

    def ranks(report: AnyReport) -> list[int]:
        found = [known[report.id][0]]
        while (on := report.stands_on) and on.batch in known and known[on.batch][0] not in found:
            rank, report = known[on.batch]
            found.append(rank)
        return found[::-1]

    return sorted((report for _, report in known.values()), key=ranks)


def why_not_alone(context: RepoContext, report: CommittedReport) -> Problem | None:
    """Return why a proposal cannot land by itself: others are below it, or one is gone."""
    if report.stands_on is None:
        return None
    id, stack = report.id, under(context, report)
    if stack.commit is None:
        return Problem(
            "depends.failed",
            f"{id} cannot land where it is: {stack.why}",
            f"`patchq discard {id}`, or send it again with `retries: {id}` without what is gone",
        )
    if stack.on is None:
        return None
    order = ", ".join((*reversed(stack.ids), id))
    return Problem(
        "depends.failed",
        f"{id} is on top of {stack.on}, which waits for review",
        f"`patchq accept --stack {id}` lands {order}, in this order; or accept {stack.ids[-1]} "
        "by itself first",
    )


# ---------------------------------------------------------------- waiting


def wait(response: Response) -> Response:
    """Return the response, with the proposal that it is to stand on.

    A batch is held until what it depends on has landed, and refused if that never will.
    """
    from patchq.gate.pipeline.progress import EndedEarly

    found = None if response.choice.ahead else _waits(response)
    if found is None:
        return response
    if isinstance(found, Below):
        return replace(response, tip=found.tip, on=found.id)
    raise EndedEarly("held" if found.severity == "warning" else "rejected", found)


def _waits(response: Response) -> Below | Problem | None:
    """Return the proposal to build on, or the problem that prevents it.

    A warning: the batch waits; an error: it would wait in vain.  An error counts first, as there is
    no sense in waiting any longer.
    """
    header, session = response.header, response.session
    open = [id for id in header.depends_on if standing(session, id)[1] not in LANDED]
    if not open:
        return None
    own = {response.id, *replaced(session, response.id, header)}
    if circle := own & _needed(session, open):
        names = ", ".join(sorted(circle))
        return _failed(open[0], f"the change would wait for itself, or what it replaces: {names}")
    waits = [_look_at(response, id) for id in open]
    error = next((problem for problem in waits if problem.severity == "error"), None)
    choice = response.choice
    is_proposed = not choice.accepted and (response.mode == "review" or choice.in_stack)
    if error is None and is_proposed:
        return _footing(response, open)
    return error or waits[0]


def _footing(response: Response, open: Sequence[str]) -> Below | Problem | None:
    """Return the proposal on top of all that the batch depends on; else why it waits."""
    session = response.session
    found: list[Below] = []
    above: dict[str, set[str]] = {}
    for id in open:
        below = proposal_in_place_of(session, id, response.target)
        if below is None:  # a person has just merged it
            continue
        if not isinstance(below, Below):
            return _held(id, below)
        stack = under(session, below.report)
        if stack.why:
            return _held(id, f"{below.id} has lost what it stood on: {stack.why}")
        found.append(below)
        above[below.id] = {below.id, *stack.ids}
    top = next((below for below in found if above[below.id] >= above.keys()), None)
    if top is None and found:
        names = ", ".join(below.id for below in found)
        return _held(found[0].id, f"{names} wait side by side, and a branch can stand on one")
    lacking = top and _not_there(response, top)
    return _held(lacking, f"{top.id} is not on top of it yet") if top and lacking else top


def _not_there(response: Response, below: Below) -> str | None:
    """Return a landed batch that the response depends on and the proposal `below` lacks."""
    session = response.session
    for id in response.header.depends_on:
        report = session.queue.load(standing(session, id)[0])
        if report is None or report.state not in LANDED or not has_commit(report):
            continue
        if not history.landing(report, session.repo, below.tip):
            return id
    return None


def _look_at(response: Response, id: str) -> Problem:
    session = response.session
    last, state = standing(session, id)
    why = f"{with_successor(id, last)} is {state}" if state else f"no change {last} is known"
    if state in OVER:
        return _failed(id, f"the change depends on {id}, and {why}")
    waited = session.clock() - (response.claim.held_since or session.clock())
    if state is None and waited > session.config.queue.hold_seconds:
        return _failed(id, f"the change depends on {id}, and {why} after {waited:.0f} s")
    return _held(id, why)


def _held(id: str, why: str) -> Problem:
    return Problem(
        "depends.failed",
        f"the change waits for {id} to land: {why}",
        "nothing to send: it goes on by itself",
        severity="warning",
        conflicts_with=Collision(batch=id),
    )


def _needed(context: RepoContext, ids: Sequence[str]) -> set[str]:
    """Return the batches that these are or come after, over however many others."""
    found, left = set[str](), list(ids)
    while left:
        id = left.pop()
        last = standing(context, id)[0]
        report = None if last in found else context.queue.load(last)
        found |= {id, last}
        if report and report.state == "held":
            left += header_of(context.queue.body(last) or b"").depends_on
        elif report and report.stands_on:
            left.append(report.stands_on.batch)
    return found


def _failed(id: str, message: str) -> Problem:
    return Problem(
        "depends.failed",
        message,
        "send the change again once the other one has landed, or without depends_on",
        conflicts_with=Collision(batch=id),
    )
