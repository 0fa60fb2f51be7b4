"""What a person decides about a proposal, and what a person did to it by plain git.

Nothing here needs the queue's lock: branches move by compare-and-swap, and a report that was not
rewritten since patchq died is put right by `reconcile` the next time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from patchq import history, land, refs, report, report_md, selection, worktree
from patchq.errors import Fault, UsageError
from patchq.model import Problem, Source, State
from patchq.pipeline import process
from patchq.queue import Claim, Report
from patchq.world import Choice, Draft, Tips, World

DISCARDED = "refs/patchq/discarded/"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Decided:
    """The report as it stands now, and why nothing was done, if so."""

    report: Report
    problems: tuple[Problem, ...] = ()


def accept(
    world: World, id: str, only: frozenset[str] | None = None, without: frozenset[str] = frozenset()
) -> Decided:
    """Land a proposal on its target, whole or the chosen edits of it."""
    told = _proposal(world, id)
    for _ in range(_TRIES):
        target, commit = told["target"], told["commit"]
        tip, branch = world.repo.branch_tip(target), world.repo.branch_tip(f"patchq/{id}")
        if tip is None or branch is None:
            missing = target if tip is None else f"patchq/{id}"
            raise UsageError(f"the branch {missing} is gone", "see `patchq status`")
        busy = worktree.busy(world.repo, target)
        if busy:
            return Decided(told, (_busy(target, busy),))
        draft = _landing(world, told, tip, branch, only, without)
        if draft.state == "rejected" or not draft.commit:
            errors = tuple(p for p in draft.problems if p.severity == "error")
            return Decided(told, errors or tuple(draft.problems))
        dirty = _dirty(world, target, tip, draft.paths)
        if dirty:
            return Decided(told, (_uncommitted(id, dirty),))
        log = f"patchq: {id}: {draft.subject}"
        value, who = refs.stage(world.repo, draft.commit), world.identity()
        land.flush(world)
        moved = land.move_target(world, target, tip, value, log, who)
        if moved:
            refs.create(world.repo, land.BATCHES + id, value, log, who)
        value.drop()
        if moved:
            land.flush(world)
            _drop_branch(world, id, branch)
            fields: dict[str, Any] = {"commit": draft.commit, "tree": draft.tree}
            if draft.commit != commit and branch == commit:
                made = report.to_json(draft.outcome())
                edits = selection.merged(told["edits"], made["edits"], without)
                fields |= {"edits": edits, "diff": made["diff"]}
            return Decided(_rewrite(world, told, "accepted", **fields))
    problem = Problem(
        "target.moved",
        f"{told['target']} moved {_TRIES} times while the batch was to land",
        f"run `patchq accept {id}` again",
    )
    return Decided(told, (problem,))


def _landing(
    world: World,
    told: Report,
    tip: str,
    branch: str,
    only: frozenset[str] | None,
    without: frozenset[str],
) -> Draft:
    """The commit to land: the branch as it stands, or the batch made again on the target's tip."""
    id, repo = told["id"], world.repo
    draft = Draft(_claim(world, told), world, id=id, target=told["target"], parent=tip)
    whole = only is None and not without
    if whole and repo.is_ancestor(tip, branch):
        draft.commit, draft.tree, draft.state = branch, repo.tree(branch).root, "applied"
        draft.subject = repo.message(branch).split("\n", 1)[0]
        draft.paths = tuple(sorted(repo.changed_paths(tip, branch)))
        return draft
    if branch != told["commit"]:
        draft.problems.append(
            Problem(
                "target.moved",
                f"patchq/{id} holds commits of a person, and "
                + ("only whole branches can land then" if not whole else f"{told['target']} moved"),
                f"merge or rebase the branch by hand: git merge patchq/{id}",
            )
        )
        return draft
    chosen = None if whole else selection.select(told["edits"], only, without)
    base, target = told["base"]["commit"], told["target"]
    choice = Choice(edits=chosen, base=base, target=target, accepted=True)
    return process(draft.claim, world, Tips(world), choice)


def _claim(world: World, told: Report) -> Claim:
    source = told["source"]
    body = world.queue.body(told["id"])
    if body is None:
        raise Fault(
            f"the response of {told['id']} is gone from the queue",
            "restore `.patchq/` from a backup, or discard the batch",
        )
    return Claim("", Source(source["name"], source["sha256"], source["bytes"]), body, id=told["id"])


def _busy(target: str, doing: str) -> Problem:
    return Problem(
        "target.busy",
        f"a work tree is {doing} {target}",
        f"finish or abort that, then accept again ({target} must not move meanwhile)",
    )


def _dirty(world: World, target: str, tip: str, paths: tuple[str, ...]) -> list[str]:
    return [
        path
        for checkout in worktree.checkouts(world.repo, target)
        for path in worktree.dirty(checkout, tip, paths)
    ]


def _uncommitted(id: str, paths: list[str]) -> Problem:
    return Problem(
        "worktree.dirty",
        "the work tree has uncommitted changes in " + ", ".join(paths),
        f"commit or stash them, then run `patchq accept {id}` again",
        path=paths[0],
    )


def discard(world: World, id: str) -> Decided:
    """Take a proposal away; its tip stays at `refs/patchq/discarded/<id>`."""
    for claim in world.queue.held():
        if claim.id == id and (held := world.queue.load(id)):
            told = report.with_state(held, "discarded")
            world.queue.publish(claim, told, report_md.to_markdown(told))
            return Decided(told)
    told = dict(_proposal(world, id))
    branch = world.repo.branch_tip(f"patchq/{id}")
    if branch and worktree.checkouts(world.repo, f"patchq/{id}"):
        raise UsageError(
            f"patchq/{id} is checked out", "check out another branch there, then discard again"
        )
    _keep(world, id, branch or told["commit"])
    if branch:
        _drop_branch(world, id, branch)
    return Decided(_rewrite(world, told, "discarded"))


def _keep(world: World, id: str, commit: str) -> None:
    log = f"patchq: {id}: discarded"
    refs.create(world.repo, DISCARDED + id, commit, log, world.identity())


def _proposal(world: World, id: str) -> Report:
    told = world.queue.load(id)
    if told is None:
        raise UsageError(f"there is no batch {id}", "see `patchq log`")
    seen = observe(world, told)
    if seen.state != "proposed":
        raise UsageError(f"batch {id} does not wait for review: it is {seen.state}")
    return told


def _drop_branch(world: World, id: str, tip: str) -> None:
    """Delete the review branch if it is still at `tip` and nobody has it checked out."""
    if not worktree.checkouts(world.repo, f"patchq/{id}"):
        refs.delete(world.repo, f"refs/heads/patchq/{id}", tip)
    waiting = world.repo.ref_target(land.WAITING + id)
    if waiting:
        refs.delete(world.repo, land.WAITING + id, waiting)


def _rewrite(world: World, told: Report, state: State, **fields: Any) -> Report:
    return _put(world, report.with_state(told, state, **fields))


def _put(world: World, fresh: Report) -> Report:
    world.queue.rewrite(fresh, report_md.to_markdown(fresh))
    world.queue.sync()
    return fresh


# ---------------------------------------------------------------- what plain git did


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
                changed.append(_put(world, fresh))
            continue
        commit = seen.commit or told["commit"]
        name = land.BATCHES if seen.state == "accepted" else DISCARDED
        log = f"patchq: {id}: {seen.note}"
        refs.create(world.repo, name + id, commit, log, world.identity())
        _drop_branch(world, id, world.repo.branch_tip(f"patchq/{id}") or "")
        tree = world.repo.tree(commit).root
        changed.append(_rewrite(world, told, seen.state, commit=commit, tree=tree))
    return changed


def _not_ours(id: str) -> Problem:
    return Problem(
        "target.moved",
        f"patchq/{id} was changed by hand, so patchq does not make it again when the target moves",
        f"`patchq accept {id}` lands it as it stands; `patchq discard {id}` and the same response "
        "again make it anew",
        severity="warning",
    )
