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
from patchq.gate.pipeline import depends, mode, stages
from patchq.gate.pipeline.progress import (
    Decision,
    EndedEarly,
    Resolved,
    Response,
    Target,
    crashed,
    decide,
)
from patchq.gate.pipeline.session import AS_SENT, Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.report import logs


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
        found = decide(response, target, base, parsed, resolved)
        return replace(found, state=state, problems=(*response.warnings, *problems), **known)

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
                decision = mode.choose(decision, resolved.plan, target, session, tips.unsure)
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
