"""Working off the queue: claims in, verdicts out, group by group.

`watch` and `run` share this; they differ only in what they do when nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic

from patchq.git import refs, unwritten, worktree
from patchq.land import collisions, landing, presubmit, recovery, supersede
from patchq.model.report import REPLACING, Report
from patchq.model.values import Problem
from patchq.pipeline import overrides
from patchq.pipeline.draft import Draft
from patchq.pipeline.overrides import WHOLE, Choice
from patchq.pipeline.process import process
from patchq.pipeline.world import Tips, World
from patchq.queue import Claim

GROUP = 256
"""Responses that share their flushes, at most."""
_GROUP_SECONDS = 0.2
_TRIES = 20
"""How often a batch is decided again by itself since somebody else moved its branch meanwhile."""

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
        world.tell(report)
    left = [claim for claim in rest if not claim.held]
    work(recovery.once_more(left, world), world, tell)


def turn(world: World, tell: Tell) -> int:
    """Give a verdict to the responses that wait, one group of them; how many there were."""
    claims = world.desk.answered() if world.desk else []
    claims += world.queue.claim(1 if world.ask else presubmit.group_size(world, GROUP))
    work(claims, world, tell)
    return len(claims)


def look_at_held(world: World, tell: Tell) -> int:
    """Decide again on the batches that wait for something; how many of them went on."""
    return work(world.queue.held(), world, tell)


def work(claims: Iterable[Claim], world: World, tell: Tell, choice: Choice = WHOLE) -> int:
    """Give every claim its verdict, in order; how many got one that ends it.

    Each batch is decided on the branches as those before it leave them, and a group lands at once.
    The same bytes twice are two groups: the second is recognised by the report of the first.  So
    are two batches that a work tree has to follow: it shows only what has landed.
    """
    tips, ended, most = Tips(world), 0, presubmit.group_size(world, GROUP)
    group: list[Draft] = []
    began = monotonic()
    for claim in claims:
        if claim.request and world.desk:
            world.desk.take(claim)
            continue
        same = any(draft.claim.source.sha256 == claim.source.sha256 for draft in group)
        if same or len(group) >= most or (group and monotonic() - began > _GROUP_SECONDS):
            ended += _settle(group, world, tips, tell)
            group, began = [], monotonic()
        if world.ask and choice is WHOLE:
            ended += _settle(group, world, tips, tell)
            group = []
        draft = _decide(claim, world, tips, choice)
        if draft.state == "held" and claim.held:
            landing.hold_on(draft, world)
            continue
        if _sees_what_has_not_landed(draft, group):
            ended += _settle(group, world, tips, tell)
            group, began = [], monotonic()
            draft = _decide(claim, world, tips, draft.choice)
        group.append(draft)
        if draft.commit and draft.follows and not world.hooks.parallel:
            ended += _settle(group, world, tips, tell)
            group, began = [], monotonic()
    return ended + _settle(group, world, tips, tell)


def _sees_what_has_not_landed(draft: Draft, group: Sequence[Draft]) -> bool:
    """Whether the work tree looks dirty to the draft because it still has to follow another."""
    follows = any(before.follows and before.target == draft.target for before in group)
    return follows and any(problem.code == "worktree.dirty" for problem in draft.problems)


def _decide(claim: Claim, world: World, tips: Tips, choice: Choice) -> Draft:
    if choice is WHOLE:
        choice = overrides.of(claim)
    if world.ask and choice is WHOLE:
        choice = world.ask(claim)
    world.pulse()
    draft = process(claim, world, tips, choice)
    if draft.state == "applied" and draft.commit and draft.target:
        tips.move(draft.target, draft.commit)
    return draft


def _settle(
    group: Sequence[Draft], world: World, tips: Tips, tell: Tell, tries: int = _TRIES
) -> int:
    """Have a group checked, and land it.

    What was built on a batch that a hook refused is decided again without that.  What others moved
    the branch away from is decided again, too, in two halves: the smaller a group is, the sooner
    it lands.
    """
    dropped = presubmit.check(group, world)
    stays = [draft for draft in group if not any(draft is other for other in dropped)]
    collisions.warn(stays, world)
    landed = landing.land(stays, world, tips)
    if world.hooks.before:
        tips.forget()  # they may hold what a hook refused
    ended = sum(_publish(draft, world, tell) for draft in landed.done)
    collisions.spread(landed.done, world)
    lost = landed.again
    middle = len(lost) // 2
    for half in (lost[:middle], lost[middle:]):
        for again in _decided_again(half, world, tips):
            if len(half) == 1 and tries == 1:
                _give_up(again[0])
            left = tries - 1 if len(lost) == 1 else tries
            ended += _settle(again, world, tips, tell, left)
    for again in _decided_again(dropped, world, tips):
        ended += _settle(again, world, tips, tell, tries)
    return ended


def _decided_again(drafts: Sequence[Draft], world: World, tips: Tips) -> Iterator[list[Draft]]:
    """New drafts in place of these, in groups, each of which has to be settled before the next."""
    group: list[Draft] = []
    for old in drafts:
        draft = _decide(old.claim, world, tips, old.choice)
        if _sees_what_has_not_landed(draft, group):
            yield group
            group = []
            draft = _decide(old.claim, world, tips, old.choice)
        group.append(draft)
    if group:
        yield group


def _publish(draft: Draft, world: World, tell: Tell) -> bool:
    """Whether the claim ended."""
    if draft.state in REPLACING:
        supersede.by(draft.id, draft.header, world)
    landing.publish(draft, world)
    if draft.state != "held" or not draft.claim.held:
        tell(draft.told)
        world.tell(draft.told)
    if draft.state == "rejected" and world.desk:
        world.desk.refused(draft.told)
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
