"""Deciding on a batch where it is decided on: here, or in a cluster by the worker that serves its
branch.  Every door (command, page, MCP, `review --next`) decides by this."""

from __future__ import annotations

from patchq.cli import cluster
from patchq.land import worker
from patchq.pipeline import traces
from patchq.pipeline.world import World
from patchq.queue.lock import lock_owner
from patchq.review import errands
from patchq.review.decide import Decided
from patchq.review.errands import Errand

_FOLLOWS_SECONDS = 10.0
"""How long the feeder here, if one runs, is waited for."""


def decide(world: World, errand: Errand, tell: worker.Tell = lambda report: None) -> Decided:
    """Have it done, and return what came of it; `tell` gets the verdicts on batches that were made
    for it.  Raises what kept it from being done, here or there; in a cluster `errors.Busy` where
    nobody serves the branch."""
    if "cluster" not in world.config.given:
        return errand.carry_out(world, tell)
    from patchq.cli.feeding import feeder_name
    from patchq.queue.postgres.asking import Asking

    id, feeder = errand.id, feeder_name(world.queue_root)
    report = world.queue.load(id)
    with Asking(cluster.database_of(world.config)) as asking:
        lane = report["target"] or world.target if report else asking.lane_of(id)
        if lane is None:
            raise traces.unknown(world, id)
        words = {**errands.words_of(errand), "feeder": feeder}
        answer = asking.ask(lane, words, cluster.SOON_SECONDS)
        if lock_owner(world.queue_root) is not None:
            # Else what is looked at next is shown as it was before this.
            asking.follow(feeder, _FOLLOWS_SECONDS)
    decided, verdicts = errands.answered(answer)
    for verdict in verdicts:
        tell(verdict)
    return decided
