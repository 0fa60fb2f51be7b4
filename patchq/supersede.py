"""A new batch takes the place of one that waits: because it says so, or is its agent's next try."""

from __future__ import annotations

from patchq import land, refs, report, report_md, worktree
from patchq.model import Header
from patchq.names import batch_id
from patchq.queue import Report
from patchq.world import World

_WAITING = ("proposed", "held")


def by(new: str, header: Header, world: World) -> None:
    """Supersede what the batch `new`, which has landed or is held, replaces; safe to repeat.

    Only `retries: ID`, or the front matter's own `id` of a waiting batch by the same `agent`, does.
    It comes before the report on `new`, so that no crash leaves both waiting.
    """
    for id in _replaced(header):
        told = world.queue.load(id)
        if told is None or id == new or told["state"] not in _WAITING:
            continue
        same_agent = told["agent"] is not None and told["agent"] == header.agent
        if header.retries == id or same_agent:
            _supersede(id, told, new, world)


def _replaced(header: Header) -> set[str]:
    named = {header.retries, header.id and batch_id(header.id)}
    return {id for id in named if id}


def _supersede(id: str, told: Report, new: str, world: World) -> None:
    fresh = report.with_state(told, "superseded")
    page = report_md.to_markdown(fresh)
    for claim in world.queue.held():
        if claim.id == id:
            world.queue.publish(claim, fresh, page)
            return
    tip = world.repo.branch_tip(f"patchq/{id}")
    if tip and tip == told["commit"] and not worktree.checkouts(world.repo, f"patchq/{id}"):
        log = f"patchq: {id}: superseded by {new}"
        refs.create(world.repo, f"refs/patchq/discarded/{id}", tip, log, world.identity())
        refs.delete(world.repo, f"refs/heads/patchq/{id}", tip)
    waits = world.repo.ref_target(land.WAITING + id)
    if waits:
        refs.delete(world.repo, land.WAITING + id, waits)
    world.queue.rewrite(fresh, page)
