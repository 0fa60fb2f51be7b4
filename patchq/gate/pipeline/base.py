"""The commit that an agent saw, and what of its change still fits the branch as it is now.

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

from msgspec.structs import replace

from patchq.core.model.ops import Rename, Write
from patchq.core.model.values import Base, Edit, FileChange, Plan, Problem
from patchq.core.plan import batch
from patchq.gate.git import merges, records
from patchq.gate.git.repository import Repository, State
from patchq.gate.pipeline import carry as carrying
from patchq.gate.pipeline import history
from patchq.gate.pipeline.carry import Move
from patchq.gate.pipeline.progress import EndedEarly, Resolved, Response, Target
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import STANDING

_MOST_COMMITS = 300
_MOST_STATES = 30
# Limits of the search for a base: commits back, different states of the named files, and the bytes
# that these may have together.
_MOST_BYTES = 20 << 20
# Codes that an edit made for an older commit meets on the tip. An ambiguous one is none of these:
# that it was unique once does not show that its author saw it so.
_MISSED = {"match.none", "match.count", "anchor.none", "path.not_found"}


def choose(response: Response, target: Target) -> Base:
    """Return the commit that the agent saw: the declared one, else, for now, the target's tip."""
    session, declared = response.session, response.header.base
    if response.choice.base is not None:
        return response.choice.base
    if declared is None:
        return Base(target.tip, "tip")
    # A clone's own branch is as old as the clone, and another on each machine.
    remote = session.branches.remote
    shared = session.branches.tip(declared) if remote else None
    if commit := shared or session.repo.resolve_commit(declared):
        return Base(commit, "declared")
    where = f"on {remote}, as far as it is fetched here" if remote else "in this repository"
    problem = Problem(
        "frontmatter.base",
        f"there is no commit {declared!r} {where}",
        "give the id of the commit that you read the files from, in full, or leave `base` out",
    )
    raise EndedEarly("rejected", problem)


def infer(session: Session, base: Base, edits: Sequence[Edit], on_tip: Plan) -> tuple[Base, Plan]:
    """Return the newest commit on which every edit resolves, where some did not on the tip.

    With the plan there; else both as they are.
    """
    errors = {error.code for error in on_tip.errors}
    if base.how != "tip" or not errors <= _MISSED:
        return base, on_tip
    repo, tip = session.repo, base.commit
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
        plan = batch.plan(edits, tree, session.rules, diagnosed=False)
        if not plan.refused and plan.changes:
            return Base(commit, "inferred"), plan
    return base, on_tip


def lost(repo: Repository, tip: str, resolved: Resolved) -> tuple[str, ...]:
    """Return the files that are made of a whole text, and that the branch has had until lately.

    Their author may have seen them, and meant to rewrite them.
    """
    new = {change.path for change in resolved.plan.changes if change.before is None}
    edits = resolved.parsed.edits if new else ()
    written = [edit.path for edit in edits if isinstance(edit.op, Write) and edit.path in new]
    if not written:
        return ()
    lately = islice(repo.states(tip, written), _MOST_COMMITS)
    there = {path for _, state in lately for path, oid in zip(written, state, strict=True) if oid}
    return tuple(sorted(there))


def carry(response: Response, target: Target, resolved: Resolved) -> Resolved:
    """Return the plan on the target's tip; refuse each file where that is not certain."""
    session, plan, tip = response.session, resolved.plan, target.tip
    base, edits, changes, beside = resolved.base, resolved.edits, plan.changes, False
    if base.commit == tip or not changes:
        return resolved
    move = Move(session.repo, base, tip, session.queue.load)
    if not move.leaves_alone(changes):
        _refuse_delivered(response, target, resolved)
        taken = response.choice.among(resolved.parsed.edits)
        tree = session.repo.tree(tip)
        on_tip = batch.plan(taken, tree, session.rules, diagnosed=False)
        carried, beside = carrying.carry(taken, plan, on_tip, move)
        now, changes = {edit.id: edit for edit in carried.edits}, carried.changes
        edits = tuple(now.get(edit.id, edit) for edit in edits)
        if carried.refused:
            raise EndedEarly("rejected", *carried.problems, edits=edits)
    if changes and move.may_meet(plan.changes):
        problem = _merged_otherwise(session.repo, plan.changes, changes, move, beside)
        if problem:
            raise EndedEarly("rejected", problem, edits=edits)
    return replace(resolved, plan=replace(plan, changes=changes, edits=edits), edits=edits)


def refuse_known(session: Session, target: Target, id: str, sha256: str) -> None:
    """End a response whose edits wait as the batch, or have landed as it.

    `sha256` (hex) is of the bytes that the batch was made of.
    """
    repo, tip = session.repo, target.tip
    report = session.queue.load(id) or history.landed(session, id, sha256, target.branch, tip)
    if report is None or report.target != target.branch:
        return
    proposed = report.state == "proposed" and session.branches.tip(records.branch(report.id))
    if report.state == "held" or proposed:
        raise EndedEarly("duplicate", duplicate_of=report.id)
    commit = history.landing(report, repo, tip) if report.state in STANDING else None
    if commit is None:
        return
    if touched := history.touched_paths(repo, commit, tip):
        collision = history.collides_with(repo, commit, tip, touched[0])
        problem = Problem(
            "conflict.base",
            f"these edits landed as change {report.id}, and what they wrote into {touched[0]} was "
            f"changed since by {history.commit_in_words(collision)}",
            "read the file again and send a new response, if it is still to change",
            path=touched[0],
            conflicts_with=collision,
        )
        raise EndedEarly("rejected", problem)
    raise EndedEarly("duplicate", duplicate_of=report.id)


def _refuse_delivered(response: Response, target: Target, resolved: Resolved) -> None:
    """End a response whose edits a commit since its base has made of the same files."""
    session = response.session
    base, changes = resolved.base.commit, resolved.on_base
    commit = history.delivery(session.repo, changes, base, target.tip)
    if commit is None:
        return
    named = history.trailers(session.repo, commit)
    sources = named.get("Patchq-Source", ())
    for id, source in zip(named.get("Patchq-Batch", ()), sources, strict=False):
        if id != response.id:
            refuse_known(session, target, id, source.removeprefix("sha256:"))
    if "Patchq-Batch" not in named and not history.touched_paths(session.repo, commit, target.tip):
        raise EndedEarly("duplicate", duplicate_of=commit)


def _merged_otherwise(
    repo: Repository,
    on_base: Sequence[FileChange],
    changes: Sequence[FileChange],
    move: Move,
    beside: bool,
) -> Problem | None:
    """Return the problem if git's own merge gives another tree, or finds a conflict.

    One of lines `beside` each other does not count.
    """
    with repo.buffer.tentative():
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
        f"what this change changes was changed {move.since}, too, and git's own merge {how}",
        move.cure,
        path=changes[0].path,
    )
