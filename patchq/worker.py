"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from patchq import land, recovery, refs, review, supersede, worktree
from patchq.model import Problem
from patchq.pipeline import process
from patchq.queue import Claim
from patchq.world import Draft, Tips, World

GROUP = 64
"""Responses that share their flushes, at most."""
_GROUP_SECONDS = 0.2
_TRIES = 5

Tell = Callable[[Draft], None]
"""Called with each verdict once its report is there."""


def start(world: World, tell: Tell) -> None:
    """Put right what a crash left: locks, half-followed work trees, claims without a verdict."""
    refs.clean(world.repo.commondir)
    worktree.recover(world.repo)
    fresh = []
    for claim in world.queue.recover():
        if not claim.held and not recovery.finish(claim, world):
            fresh.append(claim)
    work(fresh, world, tell)
    review.reconcile(world)


def turn(world: World, tell: Tell) -> int:
    """Give a verdict to the responses that wait, one group of them; how many there were."""
    claims = world.queue.claim(GROUP)
    work(claims, world, tell)
    return len(claims)


def work(claims: Iterable[Claim], world: World, tell: Tell) -> None:
    """Give every claim its verdict, in order.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    The same bytes twice are two groups: the second is recognised by the report of the first.
    """
    tips = Tips(world)
    group: list[Draft] = []
    began = monotonic()
    for claim in claims:
        same = any(draft.claim.source.sha256 == claim.source.sha256 for draft in group)
        if same or len(group) >= GROUP or (group and monotonic() - began > _GROUP_SECONDS):
            _settle(group, world, tips, tell)
            group, began = [], monotonic()
        group.append(_decide(claim, world, tips))
    _settle(group, world, tips, tell)


def _decide(claim: Claim, world: World, tips: Tips) -> Draft:
    draft = process(claim, world, tips)
    if draft.state == "applied" and draft.commit and draft.target:
        tips.move(draft.target, draft.commit)
    return draft


def _settle(group: Sequence[Draft], world: World, tips: Tips, tell: Tell) -> None:
    for _ in range(_TRIES):
        if not group:
            return
        landed = land.land(group, world, tips)
        for draft in landed.done:
            supersede.by(draft, world)
            tell(draft)
        group = [_decide(draft.claim, world, tips) for draft in landed.again]
    for draft in group:
        _give_up(draft)
    for draft in land.land(group, world, tips).done:
        tell(draft)


def _give_up(draft: Draft) -> None:
    draft.state, draft.commit, draft.tree = "rejected", None, None
    draft.problems.append(
        Problem(
            "target.moved",
            f"{draft.target} moved {_TRIES} times while the batch was to land",
            "send the response again when the branch is quieter",
        )
    )


def look_at_held(world: World, tell: Tell) -> int:
    """Decide again on the batches that wait for something; how many of them went on."""
    gone_on = 0
    for claim in world.queue.held():
        tips = Tips(world)
        draft = _decide(claim, world, tips)
        if draft.state != "held":
            _settle([draft], world, tips, tell)
            gone_on += 1
    return gone_on
