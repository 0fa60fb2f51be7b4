"""Landing: verdicts come true, many at once, each by one compare-and-swap of one ref.

The order is what makes a crash harmless, and three flushes pay for a whole group:

    intend every verdict | flush | move the refs | flush | publish every report | flush

The intended report lies beside the claim before any ref moves, so whoever recovers the claim knows
which commit to look for; no report appears before what it speaks of is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from patchq import refs, report, report_md, worktree
from patchq.errors import Busy
from patchq.world import Draft, Tips, World


WAITING = "refs/patchq/waiting/"
"""A ref for every proposal, so that a branch which a person deleted is missed, and told from one
that was merged first."""


@dataclass
class Landed:
    """What became of a group: the drafts that have their verdict, and those to decide again since
    their branch or work tree was changed by somebody else."""

    done: list[Draft] = field(default_factory=list)
    again: list[Draft] = field(default_factory=list)


def land(drafts: Sequence[Draft], world: World, tips: Tips) -> Landed:
    """Make the verdicts of `drafts` true, in order.  `tips` are read anew where one was lost."""
    landed = Landed()
    moving = [draft for draft in drafts if draft.commit]
    for draft in moving:
        world.queue.intend(draft.claim, report.to_json(draft.outcome()))
    if moving:
        flush(world)
    lost: set[str] = set()
    for draft in drafts:
        if draft.target in lost and draft.parent:
            landed.again.append(draft)
        elif draft.commit and not _move(draft, world):
            lost.add(draft.target or "")
            landed.again.append(draft)
        else:
            landed.done.append(draft)
    if moving:
        flush(world)
    for draft in landed.done:
        publish(draft, world)
    world.queue.sync()
    if lost:
        tips.forget()
    return landed


def flush(world: World) -> None:
    """One barrier for objects and refs, one for the queue where it is on another file system."""
    refs.barrier(world.repo.commondir)
    world.queue.sync()


def publish(draft: Draft, world: World) -> None:
    told = report.to_json(draft.outcome())
    page = report_md.to_markdown(told)
    if draft.state == "held":
        world.queue.hold(draft.claim, told, page)
    else:
        world.queue.publish(draft.claim, told, page)


def _move(draft: Draft, world: World) -> bool:
    """Move the one ref that the verdict is about; False when the tip was not what it should be."""
    assert draft.commit
    name = f"refs/heads/patchq/{draft.id}"
    log = f"patchq: {draft.id}: {draft.subject}"
    if draft.state == "proposed":
        refs.create(world.repo, WAITING + draft.id, draft.commit, log, world.identity())
        return refs.create(world.repo, name, draft.commit, log, world.identity())
    assert draft.parent
    assert draft.target
    return move_target(
        world, draft.id, draft.target, draft.parent, draft.commit, log, draft.paths
    )


def move_target(
    world: World, id: str, target: str, old: str, new: str, log: str, paths: Sequence[str]
) -> bool:
    """Move a branch from `old` to `new`, with every work tree that has it checked out, and keep
    the record of the batch; False when the branch or a work tree is not as it was."""
    follows: list[worktree.Follow] = []
    try:
        for checkout in worktree.checkouts(world.repo, target):
            follow = worktree.Follow(checkout, old, new)
            if follow.prepare():
                return _undo(follows)
            follows.append(follow)
        moved = refs.move(world.repo, f"refs/heads/{target}", old, new, log, world.identity())
    except Busy:
        _undo(follows)
        raise
    if not moved:
        return _undo(follows)
    for follow in follows:
        follow.commit()
    refs.create(world.repo, f"refs/patchq/batches/{id}", new, log, world.identity())
    return True


def _undo(follows: Sequence[worktree.Follow]) -> bool:
    for follow in reversed(follows):
        follow.rollback()
    return False

