"""The story: what happens to one response, from its bytes to a verdict that can land.

response -> envelope -> target and base -> parse -> resolve, conflicts, plan -> candidate commit.
Afterwards, for many responses at once, `presubmit.check` asks the hooks and `landing.land` makes
the verdicts true.  A refusal at any stage ends in the same report as a success; nothing has been
written by then but unreachable objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from patchq.gate.pipeline import base, dependencies, stages
from patchq.gate.pipeline.progress import Decision, Incoming
from patchq.gate.pipeline.world import Choice, Tips, World
from patchq.gate.queue import Claim
from patchq.gate.report import logs


def process(claim: Claim, world: World, tips: Tips, choice: Choice | None = None) -> Decision:
    """Decide on one response, with `tips` as the branches will be when it lands."""
    with logs.about(claim.id or claim.source.name), collected_later():
        return (
            Incoming(claim=claim, world=world, tips=tips, choice=choice or Choice())
            .then(stages.open_envelope)
            .then(stages.choose_target)
            .then(stages.recognise)
            .then(dependencies.wait)
            .then(base.choose)
            .then(stages.parse)
            .then(stages.resolve)
            .then(base.carry)
            .then(stages.check_results)
            .then(stages.choose_mode)
            .then(stages.commit)
        )


@contextmanager
def collected_later() -> Iterator[None]:
    """Look for garbage at the end.  What one decision makes is in use until then: to look through
    all of it again and again took an eighth of the time of a long one, and found nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
