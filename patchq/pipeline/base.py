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
from itertools import islice

from patchq.git import merges
from patchq.model.ops import Rename, Write
from patchq.model.values import Base, Edit, FileChange, Parsed, Plan, Problem, Tree
from patchq.pipeline.draft import Draft, Refusal
from patchq.pipeline.rebase import files
from patchq.pipeline.rebase.drift import Move
from patchq.plan import batch

_MOST_COMMITS = 300
_MOST_STATES = 30
_MOST_BYTES = 20 << 20
"""How far back a base is looked for, on how many different states of the named files, and how many
bytes these may have together."""
_MISSED = {"match.none", "match.count", "anchor.none", "path.not_found"}
"""What an edit that was made for an older commit meets on the tip.  An ambiguous one is none of
these: that it was unique once does not show that its author saw it so."""


def choose(draft: Draft) -> Tree:
    """The commit that the agent saw: the declared one, else, for now, the target's tip."""
    assert draft.parent is not None
    repo = draft.world.repo
    if draft.choice.base is not None:
        draft.base = draft.choice.base
        return repo.tree(draft.base.commit)
    declared = draft.header.base
    if declared is None:
        draft.base = Base(draft.parent, "tip")
        return repo.tree(draft.parent)
    commit = repo.resolve_commit(declared)
    if commit is None:
        raise Refusal(
            Problem(
                "frontmatter.base",
                f"there is no commit {declared!r} in this repository",
                "give the id of the commit that you read the files from (`git rev-parse HEAD`), "
                "or leave `base` out",
            )
        )
    draft.base = Base(commit, "declared")
    return repo.tree(commit)


def infer(draft: Draft, edits: Sequence[Edit], on_tip: Plan) -> Plan | None:
    """The plan on the newest commit on which every edit resolves, where some did not on the tip;
    sets the draft's base."""
    assert draft.base is not None
    errors = {problem.code for problem in on_tip.problems if problem.severity == "error"}
    if draft.base.how != "tip" or not errors <= _MISSED:
        return None
    repo, tip = draft.world.repo, draft.base.commit
    paths = _paths(edits)
    seen, left = {_state(repo.tree(tip), paths)}, _MOST_BYTES
    for commit in islice(repo.commits(tip), 1, _MOST_COMMITS):
        tree = repo.tree(commit.oid)
        state = _state(tree, paths)
        if state in seen:
            continue
        seen.add(state)
        left -= sum(len(tree.read(path)) for path in paths if _is_file(tree, path))
        if len(seen) > _MOST_STATES or left < 0:
            break
        plan = batch.plan(edits, tree, draft.world.rules, diagnosed=False)
        if not plan.refused and plan.changes:
            draft.base = Base(commit.oid, "inferred")
            return plan
    return None


def lost(draft: Draft, edits: Sequence[Edit], plan: Plan) -> tuple[str, ...]:
    """The files that the plan makes of a whole text, and that the branch has had until lately:
    their author may have seen them, and meant to rewrite them."""
    new = {change.path for change in plan.changes if change.before is None}
    written = [edit.path for edit in edits if isinstance(edit.op, Write) and edit.path in new]
    if not written or draft.parent is None:
        return ()
    repo, found = draft.world.repo, set[str]()
    for commit in islice(repo.commits(draft.parent), _MOST_COMMITS):
        tree = repo.tree(commit.oid)
        found |= {path for path in written if tree.entry(path)}
    return tuple(sorted(found))


def _paths(edits: Sequence[Edit]) -> tuple[str, ...]:
    named = [path for e in edits for path in (e.path, e.op.to if isinstance(e.op, Rename) else "")]
    return tuple(path for path in dict.fromkeys(named) if path)


def _state(tree: Tree, paths: Sequence[str]) -> tuple[str | None, ...]:
    """What stands at the paths."""
    return tuple(entry.oid if (entry := tree.entry(path)) else None for path in paths)


def _is_file(tree: Tree, path: str) -> bool:
    entry = tree.entry(path)
    return entry is not None and entry.kind == "file"


def carry(draft: Draft, parsed: Parsed, plan: Plan) -> Plan:
    """The plan on the target's tip; raises `Refusal` with a `conflict.base` for each file where
    that is not certain."""
    assert draft.base is not None
    assert draft.parent is not None
    tip, world = draft.parent, draft.world
    if draft.base.commit == tip or not plan.changes:
        return plan
    move = Move(world.repo, draft.base, tip, world.queue.load)
    changes, beside = plan.changes, False
    if not move.leaves_alone(changes):
        taken = draft.choice.of(parsed.edits)
        on_tip = batch.plan(taken, world.repo.tree(tip), world.rules, diagnosed=False)
        carried, beside = files.carry(taken, plan, on_tip, move)
        now, changes = {edit.id: edit for edit in carried.edits}, carried.changes
        draft.edits = tuple(now.get(edit.id, edit) for edit in draft.edits)
        if carried.refused:
            raise Refusal(*carried.problems)
    if changes and move.may_meet(plan.changes):
        _check_merge(draft, plan, changes, move, beside)
    return Plan(changes, draft.edits, plan.problems, plan.blind)


def _check_merge(
    draft: Draft, plan: Plan, changes: Sequence[FileChange], move: Move, beside: bool
) -> None:
    """Raise `Refusal` where git's own merge gives another tree, or finds a conflict that is not one
    of lines `beside` each other."""
    repo = draft.world.repo
    with repo.unwritten.tentative():
        theirs = repo.write_tree(move.base, plan.changes)
        ours, made = repo.tree(move.tip).root, repo.write_tree(move.tip, changes)
        merged = merges.merge(repo, repo.tree(move.base).root, ours, theirs)
    if merged.tree == made or (beside and merged.tree is None and not merged.beyond_lines):
        return
    if merged.tree:
        how = "merges them to another result"
    else:
        about = "renames or deletions" if merged.beyond_lines else "lines that may be meant"
        how = f"finds {about} among them that contradict each other"
    raise Refusal(
        Problem(
            "conflict.base",
            f"what this batch changes was changed {move.since}, too, and git's own merge {how}",
            move.cure,
            path=changes[0].path,
        )
    )
