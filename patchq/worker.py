"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from patchq import land, observed, recovery, refs, supersede, worktree
from patchq.errors import Busy
from patchq.model import Problem
from patchq.pipeline import process
from patchq.queue import Claim, Report
from patchq.repo import unwritten
from patchq.world import Draft, Tips, World

_LOG = logging.getLogger("patchq")
GROUP = 256
"""Responses that share their flushes, at most."""
_GROUP_SECONDS = 0.2
_TRIES = 20
"""How often a batch is decided again by itself since somebody else moved its branch meanwhile."""
_REPLACING = ("applied", "proposed", "held")

Tell = Callable[[Report], None]
"""Called with each report once it is there; a batch that goes on waiting is not told of again."""


def start(world: World, tell: Tell, patience: float = 5.0) -> None:
    """Put right what a crash left, of this process's forerunner or of another one: locks, files,
    half-followed work trees, claims without a verdict; and note what people did by plain git.

    A git that outlived its owner is waited for, up to `patience` seconds.
    """
    refs.clean(world.repo.commondir)
    unwritten.clean(world.repo.commondir / "objects")
    worktree.recover(world.repo, wait=patience)
    finished, rest = recovery.finish(world.queue.recover(), world)
    for report in finished:
        tell(report)
    work([claim for claim in rest if not claim.held], world, tell)
    observed.reconcile(world)


def turn(world: World, tell: Tell) -> int:
    """Give a verdict to the responses that wait, one group of them; how many there were."""
    claims = world.queue.claim(GROUP)
    work(claims, world, tell)
    return len(claims)


def look_at_held(world: World, tell: Tell) -> int:
    """Decide again on the batches that wait for something; how many of them went on."""
    return work(world.queue.held(), world, tell)


def work(claims: Iterable[Claim], world: World, tell: Tell) -> int:
    """Give every claim its verdict, in order; how many got one that ends it.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    The same bytes twice are two groups: the second is recognised by the report of the first.  So
    are two batches that a work tree has to follow: it shows only what has landed.
    """
    tips, ended = Tips(world), 0
    group: list[Draft] = []
    began = monotonic()
    for claim in claims:
        same = any(draft.claim.source.sha256 == claim.source.sha256 for draft in group)
        if same or len(group) >= GROUP or (group and monotonic() - began > _GROUP_SECONDS):
            ended += _settle(group, world, tips, tell)
            group, began = [], monotonic()
        draft = _decide(claim, world, tips)
        if draft.state == "held" and claim.held:
            land.hold_on(draft, world)
            continue
        group.append(draft)
        if draft.commit and draft.follows:
            ended += _settle(group, world, tips, tell)
            group, began = [], monotonic()
    return ended + _settle(group, world, tips, tell)


def _decide(claim: Claim, world: World, tips: Tips) -> Draft:
    draft = process(claim, world, tips)
    if draft.state == "applied" and draft.commit and draft.target:
        tips.move(draft.target, draft.commit)
    return draft


def _settle(
    group: Sequence[Draft], world: World, tips: Tips, tell: Tell, tries: int = _TRIES
) -> int:
    """Land a group.  What others moved the branch away from is decided again, in two halves: the
    smaller a group is, the sooner it lands."""
    landed = land.land(group, world, tips)
    ended = sum(_publish(draft, world, tell) for draft in landed.done)
    claims = [draft.claim for draft in landed.again]
    middle = len(claims) // 2
    for half in (claims[:middle], claims[middle:]):
        again = [_decide(claim, world, tips) for claim in half]
        if len(half) == 1 and tries == 1:
            _give_up(again[0])
        if again:
            left = tries - 1 if len(claims) == 1 else tries
            ended += _settle(again, world, tips, tell, left)
    return ended


def _publish(draft: Draft, world: World, tell: Tell) -> bool:
    """Whether the claim ended."""
    if draft.state in _REPLACING:
        supersede.by(draft.id, draft.header, world)
    try:
        land.publish(draft, world)
    except Busy as busy:  # a person decided on a held batch at this very moment
        _LOG.warning("%s", busy.message)
        return True
    if draft.state != "held" or not draft.claim.held:
        tell(draft.told)
    return draft.state != "held"


def _give_up(draft: Draft) -> None:
    if not draft.commit:
        return
    draft.state, draft.commit, draft.tree = "rejected", None, None
    draft.problems.append(
        Problem(
            "target.moved",
            f"{draft.target} moved {_TRIES} times while the batch was to land",
            "send the response again when the branch is quieter",
        )
    )
