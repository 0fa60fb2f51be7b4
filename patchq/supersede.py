"""A new batch takes the place of one that waits: because it says so, or is its agent's next try."""

from __future__ import annotations

from patchq import land, refs, report, report_md, worktree
from patchq.names import batch_id
from patchq.world import Draft, World

_WAITING = ("proposed", "held")


def by(draft: Draft, world: World) -> None:
    """Supersede the waiting batch that the landed draft replaces, if there is one.

    Only `retries: ID`, or the front matter's own `id` of a waiting batch by the same `agent`, does.
    """
    if draft.state not in ("applied", "proposed", "held"):
        return
    for id in _replaced(draft):
        told = world.queue.load(id)
        if told is None or id == draft.id or told["state"] not in _WAITING:
            continue
        same_agent = told["agent"] is not None and told["agent"] == draft.header.agent
        if draft.header.retries == id or same_agent:
            _supersede(id, draft, world)


def _replaced(draft: Draft) -> set[str]:
    named = {draft.header.retries, draft.header.id and batch_id(draft.header.id)}
    return {id for id in named if id}


def _supersede(id: str, draft: Draft, world: World) -> None:
    told = world.queue.load(id)
    assert told is not None
    fresh = report.with_state(told, "superseded")
    page = report_md.to_markdown(fresh)
    for claim in world.queue.held():
        if claim.id == id:
            world.queue.publish(claim, fresh, page)
            return
    tip = world.repo.branch_tip(f"patchq/{id}")
    if tip and tip == told["commit"] and not worktree.checkouts(world.repo, f"patchq/{id}"):
        log = f"patchq: {id}: superseded by {draft.id}"
        refs.create(world.repo, f"refs/patchq/discarded/{id}", tip, log, world.identity())
        refs.delete(world.repo, f"refs/heads/patchq/{id}", tip)
    waits = world.repo.ref_target(land.WAITING + id)
    if waits:
        refs.delete(world.repo, land.WAITING + id, waits)
    world.queue.rewrite(fresh, page)
