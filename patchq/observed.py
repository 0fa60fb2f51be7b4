"""What a person did to a proposal by plain git, and the reports that say so.

A branch that was merged, rebased, deleted or changed by hand is seen wherever a batch is looked at;
`reconcile` puts it down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from patchq import history, land, refs, report, report_md, worktree
from patchq.model import Problem, State
from patchq.queue import Report
from patchq.world import World

DISCARDED = "refs/patchq/discarded/"


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a batch as the repository shows it, and how it came to it, for people."""

    state: State
    note: str = ""
    commit: str | None = None


def observe(world: World, told: Report) -> Seen:
    """The batch's state now; another one than the report's where a person used plain git."""
    state, commit, id = told["state"], told["commit"], told["id"]
    if state != "proposed":
        return Seen(state)
    branch = world.repo.branch_tip(f"patchq/{id}")
    tip = world.repo.branch_tip(told["target"])
    if tip is not None:
        if world.repo.is_ancestor(branch or commit, tip):
            return Seen("accepted", "merged by hand", branch or commit)
        source = told["source"]["sha256"]
        landed = history.landed_as(world.repo, id, source, tip, told["base"]["commit"])
        if landed:
            return Seen("accepted", "landed by hand, as another commit", landed)
    if branch is None:
        return Seen("discarded", "its branch was deleted by hand")
    if branch != commit:
        return Seen("proposed", "its branch was changed by hand", branch)
    return Seen("proposed")


def waiting(world: World) -> Iterator[Report]:
    """The reports of all proposals that nobody has decided through patchq."""
    for name in world.repo.refs(land.WAITING):
        told = world.queue.load(name.removeprefix(land.WAITING))
        if told is not None:
            yield told


def reconcile(world: World) -> list[Report]:
    """Put down in the reports what was done by plain git; returns the ones that changed."""
    changed = []
    for told in list(waiting(world)):
        seen, id = observe(world, told), told["id"]
        if seen.state == "proposed":
            if seen.commit and not any(p["code"] == "target.moved" for p in told["problems"]):
                fresh = report.with_problems(told, _not_ours(id))
                changed.append(put(world, fresh))
            continue
        commit = seen.commit or told["commit"]
        name = land.BATCHES if seen.state == "accepted" else DISCARDED
        log = f"patchq: {id}: {seen.note}"
        refs.create(world.repo, name + id, commit, log, world.identity())
        drop_branch(world, id, world.repo.branch_tip(f"patchq/{id}") or "")
        tree = world.repo.tree(commit).root
        changed.append(rewrite(world, told, seen.state, commit=commit, tree=tree))
    return changed


def _not_ours(id: str) -> Problem:
    return Problem(
        "target.moved",
        f"patchq/{id} was changed by hand, so patchq does not make it again when the target moves",
        f"`patchq accept {id}` lands it as it stands; `patchq discard {id}` and the same response "
        "again make it anew",
        severity="warning",
    )


def drop_branch(world: World, id: str, tip: str) -> None:
    """Delete the review branch if it is still at `tip` and nobody has it checked out."""
    if not worktree.checkouts(world.repo, f"patchq/{id}"):
        refs.delete(world.repo, f"refs/heads/patchq/{id}", tip)
    waiting = world.repo.ref_target(land.WAITING + id)
    if waiting:
        refs.delete(world.repo, land.WAITING + id, waiting)


def rewrite(world: World, told: Report, state: State, **fields: Any) -> Report:
    """Put down a later state of a batch; returns the new report."""
    return put(world, report.with_state(told, state, **fields))


def put(world: World, fresh: Report) -> Report:
    """Replace a report in the queue."""
    world.queue.rewrite(fresh, report_md.to_markdown(fresh))
    world.queue.sync()
    return fresh
