"""Which commit an agent saw, and what of its change still fits the branch as it is now.

A declared base is believed.  Without one the tip is tried first, then the newest commit of the
branch's recent history on which every edit resolves: a quote of lines that are gone tells which
commit its author read.

What was resolved on an old base is carried to the tip (`carry_files`), and checked twice: an edit
that the tip itself gives a place must have the carried one, and git's own three-way merge, where it
is clean, must give the same tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from patchq.core.model.ops import Rename, Write
from patchq.core.model.values import Base, Edit, FileChange, Plan, Problem
from patchq.core.plan import batch
from patchq.gate.git import merges
from patchq.gate.git.repository import Repository, State
from patchq.gate.pipeline.progress import Aimed, Based, Decision, Planned, Read
from patchq.gate.pipeline.rebase import files
from patchq.gate.pipeline.rebase.files import Move
from patchq.gate.pipeline.world import World

_MOST_COMMITS = 300
_MOST_STATES = 30
_MOST_BYTES = 20 << 20
"""How far back a base is looked for, on how many different states of the named files, and how many
bytes these may have together."""
_MISSED = {"match.none", "match.count", "anchor.none", "path.not_found"}
"""What an edit that was made for an older commit meets on the tip.  An ambiguous one is none of
these: that it was unique once does not show that its author saw it so."""


def choose(aimed: Aimed) -> Based | Decision:
    """The commit that the agent saw: the declared one, else, for now, the target's tip."""
    repo, declared = aimed.world.repo, aimed.header.base
    base = aimed.choice.base
    if base is None:
        commit = aimed.tip if declared is None else _named(aimed.world, declared)
        base = Base(commit, "tip" if declared is None else "declared") if commit else None
    if base is not None:
        return Based(**vars(aimed), base=base, tree=repo.tree(base.commit))
    return aimed.refuse(
        Problem(
            "frontmatter.base",
            f"there is no commit {declared!r} {_where(aimed.world)}",
            "give the id of the commit that you read the files from (`git rev-parse HEAD`), "
            "or leave `base` out",
        )
    )


def _named(world: World, text: str) -> str | None:
    """The commit that an agent means.  A branch is the shared remote's, where there is one: what a
    clone has under that name is as old as the clone, and another on each machine."""
    shared = world.branches.tip(text) if world.branches.remote else None
    return shared or world.repo.resolve_commit(text)


def _where(world: World) -> str:
    if remote := world.branches.remote:
        return f"on {remote}, as far as it is fetched here"
    return "in this repository"


def infer(read: Read, edits: Sequence[Edit], on_tip: Plan) -> tuple[Read, Plan]:
    """The newest commit on which every edit resolves, where some did not on the tip, as the base,
    with the plan there; else both as they are."""
    errors = {problem.code for problem in on_tip.problems if problem.severity == "error"}
    if read.base.how != "tip" or not errors <= _MISSED:
        return read, on_tip
    repo, tip = read.world.repo, read.base.commit
    named = [path for e in edits for path in (e.path, e.op.to if isinstance(e.op, Rename) else "")]
    paths = [path for path in dict.fromkeys(named) if path]
    seen, left = set[State](), _MOST_BYTES
    for commit, state in islice(repo.states(tip, paths), _MOST_COMMITS):
        if state in seen:
            continue
        seen.add(state)
        if commit == tip:
            continue
        tree = repo.tree(commit)
        found = [path for path in paths if (at := tree.entry(path)) and at.kind == "file"]
        left -= sum(len(tree.read(path)) for path in found)
        if len(seen) > _MOST_STATES or left < 0:
            break
        plan = batch.plan(edits, tree, read.world.rules, diagnosed=False)
        if not plan.refused and plan.changes:
            return replace(read, base=Base(commit, "inferred"), tree=tree), plan
    return read, on_tip


def lost(read: Read, plan: Plan) -> tuple[str, ...]:
    """The files that the plan makes of a whole text, and that the branch has had until lately:
    their author may have seen them, and meant to rewrite them."""
    new = {change.path for change in plan.changes if change.before is None}
    if not new:
        return ()
    written = [
        edit.path for edit in read.parsed.edits if isinstance(edit.op, Write) and edit.path in new
    ]
    if not written:
        return ()
    lately = islice(read.world.repo.states(read.tip, written), _MOST_COMMITS)
    there = {path for _, state in lately for path, oid in zip(written, state, strict=True) if oid}
    return tuple(sorted(there))


def carry(planned: Planned) -> Planned | Decision:
    """The plan on the target's tip; refused with a `conflict.base` for each file where that is not
    certain."""
    tip, world, plan = planned.tip, planned.world, planned.plan
    if planned.base.commit == tip or not plan.changes:
        return planned
    move = Move(world.repo, planned.base, tip, world.queue.load)
    changes, beside = plan.changes, False
    if not move.leaves_alone(changes):
        edits = planned.choice.among(planned.parsed.edits)
        tree = world.repo.tree(tip)
        on_tip = batch.plan(edits, tree, world.rules, diagnosed=False)
        carried, beside = files.carry(edits, plan, on_tip, move)
        now, changes = {edit.id: edit for edit in carried.edits}, carried.changes
        planned = replace(planned, edits=tuple(now.get(edit.id, edit) for edit in planned.edits))
        if carried.refused:
            return planned.refuse(*carried.problems)
    if changes and move.may_meet(plan.changes):
        problem = _merged_otherwise(world.repo, plan.changes, changes, move, beside)
        if problem:
            return planned.refuse(problem)
    return replace(planned, plan=replace(plan, changes=changes, edits=planned.edits))


def _merged_otherwise(
    repo: Repository,
    on_base: Sequence[FileChange],
    changes: Sequence[FileChange],
    move: Move,
    beside: bool,
) -> Problem | None:
    """What is wrong where git's own merge gives another tree, or finds a conflict that is not one
    of lines `beside` each other."""
    with repo.unwritten.tentative():
        theirs = repo.write_tree(move.base, on_base)
        ours, made = repo.tree(move.tip).root, repo.write_tree(move.tip, changes)
        merged = merges.merge(repo, repo.tree(move.base).root, ours, theirs)
    if merged.tree == made or (beside and merged.tree is None and not merged.beyond_lines):
        return None
    if merged.tree:
        how = "merges them to another result"
    else:
        about = "renames or deletions" if merged.beyond_lines else "lines that may be meant"
        how = f"finds {about} among them that contradict each other"
    return Problem(
        "conflict.base",
        f"what this batch changes was changed {move.since}, too, and git's own merge {how}",
        move.cure,
        path=changes[0].path,
    )
