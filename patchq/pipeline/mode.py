"""Applied or proposed: what auto mode may not do unseen waits for a person, and what would move a
branch under somebody's hands waits for them to finish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patchq.git import worktree
from patchq.model.values import Plan, Problem
from patchq.pipeline.decision import Decision
from patchq.pipeline.progress import Checked
from patchq.pipeline.rebase import history
from patchq.pipeline.world import World

MOST_DELETED = 20
"""So many files a batch may delete unseen, as long as others are left."""


def choose_mode(checked: Checked) -> Checked | Decision:
    """Proposed or applied, or held until nobody's hands are on the branch."""
    decision, follows = ruled(
        checked.decision, checked.plan, checked.paths, checked.target, checked.tip, checked.world
    )
    if not decision.lands:
        return decision
    return replace(checked, decision=decision, follows=follows)


def ruled(
    decision: Decision, plan: Plan, paths: tuple[str, ...], target: str, tip: str, world: World
) -> tuple[Decision, bool]:
    """The decision with its state and the reasons for that, and whether a work tree that has the
    target checked out has to follow; `paths` are those to look at, and `tip` is the target's."""
    auto = decision.mode == "auto" and not world.config.confirm
    # A diff may ask for a mode, which patchq does not set.
    asks = any(problem.code == "path.review" for problem in decision.problems)
    applied = decision.choice.accepted or (auto and not asks)
    if not decision.choice.accepted:
        reasons = list(_reasons(decision, plan, paths, tip, world))
        decision = replace(decision, problems=(*decision.problems, *reasons))
        applied = applied and not reasons
    if applied and (doing := worktree.busy(world.repo, target)):
        busy = Problem(
            "target.busy",
            f"a work tree is {doing} {target}",
            "nothing to send: the batch lands by itself once that is finished or aborted",
            severity="warning",
        )
        return decision.ended("held", busy), False
    follows = False
    for checkout in worktree.checkouts(world.repo, target):
        follows = applied
        dirty = [
            _to_review(
                decision,
                "worktree.dirty",
                f"{path} has uncommitted changes in the work tree {checkout.workdir}",
                path,
            )
            for path in worktree.dirty(checkout, tip, paths)
        ]
        decision = replace(decision, problems=(*decision.problems, *dirty))
        applied = applied and not dirty
    return replace(decision, state="applied" if applied else "proposed"), follows


def _reasons(
    decision: Decision, plan: Plan, paths: tuple[str, ...], tip: str, world: World
) -> Iterator[Problem]:
    """Why a person has to look first."""
    for path in paths:
        ruling = world.judge(path)
        if ruling is not None and ruling.code == "path.review":
            message = f"{path} is changed, and `paths.review` has the pattern `{ruling.pattern}`"
            yield _to_review(decision, "path.review", message, path)
    deleted = {change.path for change in plan.changes if change.after is None}
    everything = (
        bool(deleted)
        and len(deleted) == len(plan.changes)
        and deleted.issuperset(world.repo.tree(tip).paths())
    )
    if everything or len(deleted) > MOST_DELETED:
        rest = "and nothing is left" if everything else f"more than {MOST_DELETED}"
        count = f"{len(deleted)} file{'' if len(deleted) == 1 else 's'}"
        message = f"{count} would be deleted, {rest}"
        yield _to_review(decision, "path.review", message, min(deleted))
    if decision.base is None or decision.base.how != "declared":
        for path in plan.blind:
            message = (
                f"{path} is changed without a word of what it held, and the response declares no "
                f"`base`{history.lately(world.repo, tip, path)}"
            )
            yield _to_review(decision, "base.unknown", message, path)


def _to_review(decision: Decision, code: str, message: str, path: str) -> Problem:
    hint = f"look at it, then `patchq accept {decision.id}`"
    return Problem(code, message, hint, severity="warning", path=path)
