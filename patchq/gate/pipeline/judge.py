"""Checks that every change has to pass, and the mode of a batch: applied, or waiting for a person.

A response's plan, what a hook made of it, a mail that `git am` is about to commit and a commit that
is pushed are all judged by `judge`: their paths, their size, secrets in them, their syntax.  How a
change came about (quotes, elisions, bases) is judged before, where it is known.  A commit may hold
what no response can say (submodules); that is refused as well.

What auto mode may not do unseen waits until a person has looked at it, and what would move a branch
that a person is working on waits for them to finish.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from patchq.core.model.values import FileChange, Problem, State, Tree
from patchq.core.plan import links, syntax, targets
from patchq.core.text import unified
from patchq.core.text.languages import SOURCE, suffix
from patchq.core.text.quote import visible
from patchq.gate.config.schema import Limits
from patchq.gate.git.checkout import Checkout, dirty, unwritable
from patchq.gate.git.objects import BLOB, SUBMODULE, Leaf, mode_of, object_id
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.report import secrecy
from patchq.gate.report.schema import CHANGES

# Warnings for which auto mode leaves a batch to a person.
_LOOKED_AT = ("path.review", "result.syntax", "response.beside")
MOST_DELETED = 20  # so many files a batch may delete unseen, as long as others are left
HAND_IN = "hand the response in"  # the hint after a dry run, which no command can name a batch of


def touched(changes: Sequence[FileChange]) -> tuple[str, ...]:
    return tuple(path for change in changes for path in change.paths)


def choose_mode(
    decision: Decision,
    changes: Sequence[FileChange],
    session: Session,
    *,
    looks: bool = True,
    known: Collection[str] = (),
    blind: Sequence[str] = (),
) -> Decision:
    """Return the decision as applied, proposed or held.

    It is held while a work tree has an unfinished git operation on its branch.  `looks` is as in
    `Tips`; the paths that are `known` were looked at before, and `blind` is as in `Plan`.
    """
    branch = decision.target
    paths = tuple(path for path in touched(changes) if path not in known)
    # What a hook or a person is asked about shall not be in the way later.
    looks |= bool(session.hooks.before or session.ask or decision.choice.dry_run)
    auto = decision.mode == "auto" and not session.config.confirm
    # A diff may ask for a mode that no file has; and what a file says may be in doubt.
    asks = any(problem.code in _LOOKED_AT for problem in decision.problems)
    applied = decision.choice.accepted or (auto and not asks)
    if not decision.choice.accepted:
        reasons = list(_reasons(decision, changes, paths, blind, session))
        if reasons:
            new = (reason for reason in reasons if reason not in decision.problems)
            decision = replace(decision, problems=(*decision.problems, *new))
            applied = False
    if applied and (doing := session.branches.busy(branch)):
        return decision.held(
            f"a work tree is {doing} {branch}",
            "nothing to send: the change lands by itself once that is finished or aborted",
        )
    follows, looks = False, looks or not applied
    for checkout in session.branches.checkouts(branch):
        follows = applied
        wanted = _wanted(changes) if looks else None
        left_behind = list(_left_behind(decision, checkout, paths, wanted))
        decision = replace(decision, problems=(*decision.problems, *left_behind))
        applied = applied and not left_behind
    state: State = "applied" if applied else "proposed"
    return replace(decision, state=state, follows=follows)


def cannot_follow(checkout: Checkout, paths: Sequence[str], then: str) -> Problem | None:
    """Return a warning if a work tree cannot follow a change of the paths.

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
    gone = dict.fromkeys(touched(changes))
    return gone | {
        change.path: (mode_of(change), object_id(BLOB, change.after))
        for change in changes
        if change.after is not None
    }


def _left_behind(
    decision: Decision,
    checkout: Checkout,
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
    there = checkout.repo.branch_tip(checkout.branch) or decision.tip
    found, _ = dirty(checkout, there, paths, wanted) if wanted is not None else ([], {})
    where = f"in the work tree {checkout.workdir}"
    for path in found:
        message, cure = f"{path} has uncommitted changes {where}", "commit or stash them"
        if checkout.repo.leaf(checkout.repo.tree(there).root, path) is None:
            message, cure = f"{path} is not committed {where}, and in the way", "move it away"
        yield Problem(
            "worktree.dirty", message, f"{cure}; then {then}", severity="warning", path=path
        )


def _reasons(
    decision: Decision,
    changes: Sequence[FileChange],
    paths: Sequence[str],
    blind: Sequence[str],
    session: Session,
) -> Iterator[Problem]:
    for change in changes:
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
    deleted = {change.path for change in changes if change.after is None}
    only = bool(deleted) and len(deleted) == len(changes)
    everything = only and deleted.issuperset(session.repo.tree(decision.tip).paths())
    if everything or len(deleted) > MOST_DELETED:
        rest = "and nothing is left" if everything else f"more than {MOST_DELETED}"
        count = "1 file" if len(deleted) == 1 else f"{len(deleted)} files"
        message = f"{count} would be deleted, {rest}"
        yield _to_review(decision, "path.review", message, min(deleted))
    auto = decision.mode == "auto"
    if auto and (asked := depends.sent_back(session, decision.id, decision.header)):
        message = f"a person asked for changes of {asked.id}, and has not seen this answer"
        yield _to_review(decision, CHANGES, message)
    if decision.base.how != "declared":
        for path in blind:
            message = (
                f"{path} is changed without a word of what it held, and the response declares no "
                f"`base`{history.last_touch(session.repo, decision.tip, path)}"
            )
            yield _to_review(decision, "base.unknown", message, path)


def _odd_mode(change: FileChange) -> str | None:
    """Return a clause on a file mode that a person looks at first."""
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


def judge(
    changes: Sequence[FileChange], before: Tree, session: Session
) -> tuple[tuple[Problem, ...], str]:
    """Return what speaks against changes of a tree, and their diff.

    The first kind of problem that is found decides; without a diff it is of paths and sizes.
    """
    sizes = ((change.path, len(change.after)) for change in changes if change.after is not None)
    if flaws := (
        *over_limits(len(changes), sizes, session.config.limits),
        *targets.misplaced(changes, before, session.rules),
        *links.flaws(changes, before, session.rules),
    ):
        return flaws, ""
    diff = unified.unified(changes)
    if secrets := (
        *secrecy.in_paths(changes),
        *secrecy.in_diff(diff),
        *secrecy.in_bytes(changes),
    ):
        return secrets, diff
    return syntax.broken([it for it in changes if session.rules.judged(it.path)]), diff


def checked(decision: Decision, changes: Sequence[FileChange], session: Session) -> Decision:
    """Return the decision with the diff of the changes, ended where these are refused."""
    if not changes:
        return decision.with_verdict("duplicate")
    problems, diff = judge(changes, session.repo.tree(decision.tip), session)
    decision = replace(decision, diff=diff, problems=(*decision.problems, *problems))
    if decision.errors:
        return decision.with_verdict("rejected")
    return replace(decision, changes=tuple(changes)) if decision.choice.dry_run else decision


def over_limits(count: int, sizes: Iterable[tuple[str, int]], limits: Limits) -> Iterator[Problem]:
    """Yield a problem for too many files, and one for an oversized file."""
    if count > limits.files:
        yield Problem(
            "response.too_large",
            f"{count} files would change, more than `limits.files` ({limits.files})",
            "send the changes in several parts",
        )
    if problem := targets.too_large(sizes, limits.file_bytes):
        yield problem


def secrets_in_words(text: str, author: str) -> tuple[Problem, ...]:
    in_message = secrecy.in_text(text, "the commit message")
    return (*in_message, *secrecy.in_text(author, "the author"))


def judge_commit(
    session: Session, parent: str, commit: str, among: Collection[str] | None = None
) -> list[Problem]:
    """Return the errors of a commit that patchq did not make.

    Its changes are those since `parent`, and only those of the paths `among`, if any are given.
    """
    repo = session.repo
    changes = repo.file_changes(parent, commit)
    chosen = [change for change in changes if among is None or change.path in among]
    problems, _ = judge(chosen, repo.tree(parent), session)
    odd = [
        Problem("path.not_a_file", f"{path} would be a submodule", "leave it out", path=path)
        for path, (_, after) in repo.changes(parent, commit).items()
        if after and after[0] == SUBMODULE and (among is None or path in among)
    ]
    return odd + [problem for problem in problems if problem.severity == "error"]
