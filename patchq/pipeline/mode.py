"""Applied or proposed: what auto mode may not do unseen waits for a person, and what would move a
branch under somebody's hands waits for them to finish."""

from __future__ import annotations

from patchq.git import worktree
from patchq.model.values import Plan
from patchq.pipeline.draft import Draft, Settled
from patchq.pipeline.rebase import history

MOST_DELETED = 20
"""So many files a batch may delete unseen, as long as others are left."""


def choose_mode(draft: Draft, plan: Plan) -> None:
    """Proposed or applied: what auto mode may not do unseen waits for a person."""
    if draft.choice.accepted:
        draft.state = "applied"
        _look_at_work_trees(draft)
        return
    config = draft.world.config
    draft.state = "applied" if draft.mode == "auto" and not config.confirm else "proposed"
    if draft.state == "applied" and any(p.code == "path.review" for p in draft.problems):
        draft.state = "proposed"  # a diff asks for a mode, which patchq does not set
    for path in draft.paths:
        ruling = draft.world.judge(path)
        if ruling is not None and ruling.code == "path.review":
            _propose(
                draft,
                "path.review",
                f"{path} is changed, and `paths.review` has the pattern `{ruling.pattern}`",
                path,
            )
    _look_at_deletions(draft, plan)
    assert draft.base is not None
    if draft.base.how != "declared":
        for path in plan.blind:
            lately = history.lately(draft.world.repo, draft.parent or "", path)
            _propose(
                draft,
                "base.unknown",
                f"{path} is changed without a word of what it held, and the response declares no "
                f"`base`{lately}",
                path,
            )
    _look_at_work_trees(draft)


def _look_at_deletions(draft: Draft, plan: Plan) -> None:
    """Propose what deletes many files, or the last ones."""
    deleted = {change.path for change in plan.changes if change.after is None}
    if not deleted:
        return
    files = draft.world.repo.tree(draft.parent or "").paths()
    everything = len(deleted) == len(plan.changes) and deleted.issuperset(files)
    if everything or len(deleted) > MOST_DELETED:
        rest = "and nothing is left" if everything else f"more than {MOST_DELETED}"
        count = f"{len(deleted)} file{'' if len(deleted) == 1 else 's'}"
        _propose(draft, "path.review", f"{count} would be deleted, {rest}", min(deleted))


def _look_at_work_trees(draft: Draft) -> None:
    """Hold what may not land while a work tree rebases the target; propose what would overwrite
    uncommitted changes."""
    assert draft.target is not None
    assert draft.parent is not None
    repo, target = draft.world.repo, draft.target
    if draft.state == "applied" and (doing := worktree.busy(repo, target)):
        draft.state = "held"
        draft.warn(
            "target.busy",
            f"a work tree is {doing} {target}",
            "nothing to send: the batch lands by itself once that is finished or aborted",
        )
        raise Settled
    for checkout in worktree.checkouts(repo, target):
        draft.follows = draft.state == "applied"
        for path in worktree.dirty(checkout, draft.parent, draft.paths):
            _propose(
                draft,
                "worktree.dirty",
                f"{path} has uncommitted changes in the work tree {checkout.workdir}",
                path,
            )


def _propose(draft: Draft, code: str, message: str, path: str) -> None:
    if draft.state == "applied":
        draft.state = "proposed"
    draft.warn(code, message, f"look at it, then `patchq accept {draft.id}`", path)
