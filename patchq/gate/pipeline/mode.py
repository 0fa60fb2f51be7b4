"""The mode of a batch: it is applied, or waits for a person.

What auto mode may not do unseen waits until a person has looked at it, and what would move a branch
that a person is working on waits for them to finish.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from patchq.core.model.values import FileChange, Plan, Problem, State
from patchq.core.text.languages import SOURCE, suffix
from patchq.core.text.quote import visible
from patchq.gate.git.checkout import Checkout, dirty, unwritable
from patchq.gate.git.objects import BLOB, Leaf, mode_of, object_id
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.progress import Decision, Target
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import CHANGES

# Warnings for which auto mode leaves a batch to a person.
_LOOKED_AT = ("path.review", "result.syntax", "response.beside")
MOST_DELETED = 20  # so many files a batch may delete unseen, as long as others are left
HAND_IN = "hand the response in"  # the hint after a dry run, which no command can name a batch of


def touched(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Return the paths on which something changes."""
    return tuple(path for change in changes for path in change.paths)


def choose(
    decision: Decision,
    plan: Plan,
    target: Target,
    session: Session,
    unsure: set[str] | None = None,
    known: Collection[str] = (),
) -> Decision:
    """Return the decision as applied or proposed, or held while its branch is in use.

    `unsure` is as in `Tips`; the paths that are `known` were looked at before.
    """
    branch, tip = target.branch, target.tip
    paths = tuple(path for path in touched(plan.changes) if path not in known)
    if session.hooks.before or session.ask or decision.choice.dry_run:
        unsure = None  # what a hook or a person is asked about shall not be in the way later
    auto = decision.mode == "auto" and not session.config.confirm
    # A diff may ask for a mode that no file has; and what a file says may be in doubt.
    asks = any(problem.code in _LOOKED_AT for problem in decision.problems)
    applied = decision.choice.accepted or (auto and not asks)
    if not decision.choice.accepted:
        reasons = list(_reasons(decision, plan, paths, tip, session))
        if reasons:
            new = (reason for reason in reasons if reason not in decision.problems)
            decision = replace(decision, problems=(*decision.problems, *new))
            applied = False
    if applied and (doing := session.branches.busy(branch)):
        return decision.held(
            f"a work tree is {doing} {branch}",
            "nothing to send: the change lands by itself once that is finished or aborted",
        )
    follows, looks = False, not applied or unsure is None or not unsure.isdisjoint(paths)
    for checkout in session.branches.checkouts(branch):
        follows = applied
        wanted = _wanted(plan.changes) if looks else None
        left_behind = list(_left_behind(decision, checkout, tip, paths, wanted))
        decision = replace(decision, problems=(*decision.problems, *left_behind))
        applied = applied and not left_behind
    if applied and looks and unsure is not None:
        unsure.difference_update(paths)
    state: State = "applied" if applied else "proposed"
    return replace(decision, state=state, follows=follows)


def cannot_follow(checkout: Checkout, paths: Sequence[str], then: str) -> Problem | None:
    """Return the problem with a work tree that cannot follow a change of the paths.

    `then` is what to do after the cure.
    """
    why = checkout.unseen
    if not why and (where := unwritable(checkout, paths)):
        why = f"{where} cannot be written"
    if not why:
        return None
    return Problem(
        "worktree.unseen",
        f"the work tree {checkout.workdir} has {checkout.branch} checked out and would be left "
        f"behind: {why}",
        f"{checkout.cure}; then {then}",
        severity="warning",
    )


def _wanted(changes: Sequence[FileChange]) -> dict[str, Leaf | None]:
    """Return the leaves that the changes put at their paths."""
    found = dict[str, Leaf | None]((path, None) for path in touched(changes))
    for change in changes:
        if change.after is not None:
            found[change.path] = (mode_of(change), object_id(BLOB, change.after))
    return found


def _left_behind(
    decision: Decision,
    checkout: Checkout,
    tip: str,
    paths: tuple[str, ...],
    wanted: Mapping[str, Leaf | None] | None,
) -> Iterator[Problem]:
    """Yield why the work tree cannot follow the batch.

    That includes a file in the way there, unless it is as `wanted`; None: do not look.
    """
    then = HAND_IN if decision.choice.dry_run else f"`patchq accept {decision.id}`"
    if problem := cannot_follow(checkout, paths, then):
        yield problem
        return
    # It is where the branch is, not where that will be once those before it have landed.
    there = checkout.repo.branch_tip(checkout.branch) or tip
    for path in dirty(checkout, there, paths, wanted) if wanted is not None else ():
        message = f"{path} has uncommitted changes in the work tree {checkout.workdir}"
        yield _to_review(decision, "worktree.dirty", message, path)


def _reasons(
    decision: Decision, plan: Plan, paths: tuple[str, ...], tip: str, session: Session
) -> Iterator[Problem]:
    """Yield the reasons for which a person has to look first."""
    for change in plan.changes:
        for path in change.paths:
            if session.policy.taken_out(path):
                continue
            why = _odd_mode(change) if path == change.path else None
            if why is None and path in paths:
                existed = change.before is not None and path == (change.renamed_from or path)
                reason = session.policy.review(path, existed=existed)
                why = reason and f"is changed, and {reason}"
            if why:
                yield _to_review(decision, "path.review", f"{path} {why}", path)
    deleted = {change.path for change in plan.changes if change.after is None}
    everything = (
        bool(deleted)
        and len(deleted) == len(plan.changes)
        and deleted.issuperset(session.repo.tree(tip).paths())
    )
    if everything or len(deleted) > MOST_DELETED:
        rest = "and nothing is left" if everything else f"more than {MOST_DELETED}"
        count = f"{len(deleted)} file{'' if len(deleted) == 1 else 's'}"
        yield _to_review(decision, "path.review", f"{count} would be deleted, {rest}", min(deleted))
    auto = decision.mode == "auto"
    if auto and (asked := depends.sent_back(session, decision.id, decision.header)):
        message = f"a person asked for changes of {asked.id}, and has not seen this answer"
        yield _to_review(decision, CHANGES, message)
    if decision.base is None or decision.base.how != "declared":
        for path in plan.blind:
            message = (
                f"{path} is changed without a word of what it held, and the response declares no "
                f"`base`{history.last_touch(session.repo, tip, path)}"
            )
            yield _to_review(decision, "base.unknown", message, path)


def _odd_mode(change: FileChange) -> str | None:
    """Return why a person looks first at a file that is no plain one, as a clause."""
    if change.link and change.after is not None:
        return f"would be a symbolic link to {visible(os.fsdecode(change.after))}"
    if change.from_link:
        return "is a symbolic link, and would be one no more"
    if change.after is None or not change.executable:
        return None
    if change.before is None or change.was_executable is False:
        return "would be a program (mode 100755)"
    plain = suffix(PurePosixPath(change.path).name) in SOURCE
    return None if plain else "is a program (mode 100755), and not plain source"


def _to_review(decision: Decision, code: str, message: str, path: str | None = None) -> Problem:
    hint = f"look at it, then `patchq accept {decision.id}`"
    if decision.choice.dry_run:  # there is no batch yet that anybody could accept
        hint = "once the response is handed in, it waits until a person has looked at it"
    return Problem(code, message, hint, severity="warning", path=path)
