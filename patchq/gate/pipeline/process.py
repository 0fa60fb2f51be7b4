"""The story: one response, from its bytes to a verdict that can land.

response -> envelope -> target and base -> parse -> resolve, conflicts, plan -> candidate commit.
Afterwards, for many responses at once, `presubmit.check` asks the hooks and `landing.land` makes
the verdicts true.  A refusal at any stage ends in the same report as a success; nothing has been
written by then but unreachable objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from patchq.core.model.values import Base, Parsed, Problem, State
from patchq.gate.errors import Fault, ObjectDamaged, disk_fault
from patchq.gate.pipeline import base as bases
from patchq.gate.pipeline import depends, stages
from patchq.gate.pipeline.progress import (
    Decision,
    EndedEarly,
    Resolved,
    Response,
    Target,
    crashed,
)
from patchq.gate.pipeline.session import AS_SENT, Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.report import logs, message


@contextmanager
def collected_later() -> Iterator[None]:
    """Look for garbage at the end: all that one decision makes is in use until then."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@collected_later()
def process(claim: Claim, session: Session, tips: Tips, choice: Choice = AS_SENT) -> Decision:
    """Return the decision on one response, with `tips` as the branches will be when it lands."""
    response = Response(claim=claim, session=session, choice=choice)
    target: Target | None = None
    base: Base | None = None
    parsed: Parsed | None = None
    resolved: Resolved | None = None
    decision: Decision | None = None

    def decided(state: State, *problems: Problem, **known: Any) -> Decision:
        """Return the verdict, with all that is known of the response so far."""
        found = Decision(
            id=response.id or claim.id or session.queue.reserve(claim, "response"),
            state=state,
            source=claim.source,
            mode=response.mode,
            target=target.branch if target else None,
            base=resolved.base if resolved else base,
            edits=resolved.edits if resolved else (),
            problems=(*response.warnings, *problems),
            timings=dict(response.timings),
            corrections=resolved.corrections if resolved else (),
            rules=session.judged_by.origin(),
            claim=claim,
            choice=choice,
            header=response.header,
            tip=target.tip if target else None,
            on=target.on if target else None,
            subject=message.headline(response.header, parsed.summary if parsed else None),
        )
        return replace(found, **known)

    with logs.about(claim.id or claim.source.name):
        try:
            response = stages.open_envelope(response)
            stages.check_envelope(response)
            target = stages.choose_target(response, tips)
            stages.refuse_duplicate(response, target)
            target = depends.wait(response, target)
            base = bases.choose(response, target)
            parsed = stages.parse(response, base)
            resolved = stages.resolve(response, target, base, parsed)
            stages.check_resolved(response, resolved)
            resolved = bases.carry(response, target, resolved)
            changes = resolved.plan.changes
            decision = stages.checked(decided("applied"), changes, target.tip, session)
            if decision.lands:
                decision = stages.choose_mode(decision, response, target, resolved, tips)
            if decision.lands:
                decision = stages.commit(decision, response, target, resolved)
            return decision
        except EndedEarly as end:  # a refusal, a duplicate or a hold
            return decided(end.state, *end.problems, **end.known)
        except ObjectDamaged as damage:  # this batch waits, the others go on
            return (decision or decided("rejected")).damaged(damage)
        except Fault:  # the machine: whoever runs this begins again
            raise
        except Exception as error:  # a defect refuses this response only
            if isinstance(error, OSError) and (broken := disk_fault(error)):
                raise broken from error
            return crashed(decision or decided("rejected"), error)
