"""Stacks: proposals that are built on each other, since one depends on another one that waits.

A batch that depends on a proposal is proposed on top of it: its branch begins where the other's
ends, and its diff is what it changes itself.  What it stands on is noted in its report
(`stands_on`), and looked at anew whenever that matters: the batch below may have landed, been
replaced, changed by a person or taken away meanwhile, by patchq or by plain git.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, Problem, State
from patchq.gate.git import records
from patchq.gate.pipeline import traces
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report.schema import LANDED, REPLACED, CommittedReport, Report, has_commit


class Below(Struct, frozen=True):
    """A proposal that another one stands on, or may, and the tip (hex) of its branch."""

    report: CommittedReport
    tip: str

    @property
    def id(self) -> str:
        return self.report.id


class Stack(Struct, frozen=True):
    """The proposals that one stands on, the nearest first, down to its target; `why` says what
    became of the next one, where there is nothing to stand on any more."""

    below: tuple[Below, ...] = ()
    why: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.below)


class Footing(Struct, frozen=True):
    """Where a proposal is to stand now: on a commit (hex) of the batch `on`, or of its target.
    Without a commit there is nothing that it could stand on, and `why` says so."""

    on: str | None
    commit: str | None
    why: str = ""


def standing(context: RepoContext, id: str) -> tuple[str, State | None]:
    """The batch that stands for this one now, and its state; None for one that is not known."""
    seen: set[str] = set()
    while id not in seen:
        seen.add(id)
        if report := context.queue.load(id):
            state, other = report.state, report.duplicate_of
        elif past := context.queue.past(id):
            # What people did to it later, git alone knows.
            state, other = past.state, past.other
            state = state if state in REPLACED else traces.last_state(context, id) or state
        else:
            return id, traces.last_state(context, id)
        if state not in REPLACED:
            return id, state
        if other is None:  # everything was there already; or a report from before this was noted
            return id, "applied" if state == "duplicate" else "discarded"
        id = other
    return id, "discarded"


def depends_on(data: bytes) -> tuple[str, ...]:
    """Return the batches that a response's front matter says it comes after."""
    opened = open_response(data)
    return opened.header.depends_on if isinstance(opened, Envelope) else ()


def held(context: RepoContext) -> dict[str, dict[str, State | None]]:
    """Return the batches that are held for others: id -> each open one, with its state."""
    found = {}
    for claim in context.queue.held():
        named = depends_on(claim.data)
        if claim.id and named:
            states = {other: standing(context, other)[1] for other in named}
            found[claim.id] = {id: state for id, state in states.items() if state not in LANDED}
    return found


def named(id: str, last: str) -> str:
    """A batch, and the one that stands for it now, for people."""
    return id if last == id else f"{id}, whose place {last} took,"


def look(context: RepoContext, id: str, target: str) -> Below | str | None:
    """The proposal that stands for the batch now; why there is none to stand on, or None where it
    is on the target already."""
    last, state = standing(context, id)
    report = context.queue.load(last)
    if report is not None and state == "proposed":
        state = traces.observe(context, report).state
    if state in LANDED:
        return None
    name, tip = named(id, last), context.branches.tip(records.branch(last))
    if report is None or state != "proposed" or tip is None or not has_commit(report):
        return f"{name} is {state}" if state else f"no batch {last} is known"
    if report.target != target:
        return f"{name} waits for review on {report.target}, and this batch is for {target}"
    return Below(report, tip)


def under(context: RepoContext, report: Report) -> Stack:
    """What a proposal stands on, as the repository shows it now."""
    found: list[Below] = []
    seen = {report.id}
    while (on := report.stands_on) is not None:
        below = look(context, on.batch, report.target or "")
        if below is None:
            break
        if not isinstance(below, Below):
            return Stack(tuple(found), below)
        if below.id in seen:
            return Stack(tuple(found), f"{below.id} stands on {report.id} in turn")
        seen.add(below.id)
        found.append(below)
        report = below.report
    return Stack(tuple(found))


def footing(context: RepoContext, report: CommittedReport) -> Footing:
    """Where a proposal is to stand now."""
    on = report.stands_on
    stack = under(context, report) if on else Stack()
    first = stack.below[0] if stack.below else None
    if on and stack.why:
        through = "" if first is None else f"{first.id}, on which it stands, lost its own place: "
        return Footing(first.id if first else on.batch, None, through + stack.why)
    if first is not None:
        return Footing(first.id, first.tip)
    return Footing(None, context.branches.tip(report.target))


def in_order(reports: Iterable[Report]) -> list[Report]:
    """The reports in their order, but that those of a stack come together where the first of them
    was, each behind what it stands on."""
    by_id = {report.id: report for report in reports}
    above: dict[str, list[str]] = {}
    for id, report in by_id.items():
        if report.stands_on:
            above.setdefault(report.stands_on.batch, []).append(id)
    found: dict[str, Report] = {}
    for id in by_id:
        way = [id]
        while (on := by_id[way[-1]].stands_on) and on.batch in by_id.keys() - way:
            way.append(on.batch)
        front = way[-1:]
        while front:
            one = front.pop()
            if one not in found:
                found[one] = by_id[one]
                front += reversed(above.get(one, []))
    return list(found.values())


def alone(context: RepoContext, report: CommittedReport) -> Problem | None:
    """Why a proposal cannot land by itself: it stands on others, or on what is gone."""
    if report.stands_on is None:
        return None
    id, place, stack = report.id, footing(context, report), under(context, report)
    if place.commit is None:
        return Problem(
            "depends.failed",
            f"{id} cannot land where it stands: {place.why}",
            f"`patchq discard {id}`, or send it again with `retries: {id}` without what is gone",
        )
    if place.on is None:
        return None
    order = ", ".join((*reversed(stack.ids), id))
    return Problem(
        "depends.failed",
        f"{id} stands on {place.on}, which waits for review",
        f"`patchq accept --stack {id}` lands {order}, in this order; or accept {stack.ids[-1]} "
        "by itself first",
    )
