"""Proposals follow their target: each is made again on its new tip.

One that cannot be asks for a retry.  A crash may come between any two steps.  The order tells what
a leftover is:

    objects | flush | refs/patchq/waiting/<id> | flush | refs/heads/patchq/<id> | flush | report

Where the queue is shared it has the mark, too, before the branch moves: who takes over from a
machine that died in between knows the branch's commit for patchq's own by that.

Only patchq writes the first ref, so a branch that holds what either it or the report says is
patchq's own, and anything else is a person's and never moved.  A batch whose two refs and report do
not agree is made again the next time.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from math import inf
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import Base, Problem, StandsOn
from patchq.gate.errors import Busy, Fault, ObjectDamaged
from patchq.gate.git import files, records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.git.refs import heads
from patchq.gate.land import board, overlaps, presubmit, reports
from patchq.gate.land.board import Refs
from patchq.gate.land.elsewhere import catch_up
from patchq.gate.pipeline import comments, depends, history, notes
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.depends import Stack
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Choice, Session, Tips
from patchq.gate.report import document
from patchq.gate.report.schema import (
    CHANGES,
    PENDING_CONFLICT,
    CommittedReport,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review.candidates import choice_of, claim_of, errors_of

_LOG = logging.getLogger("patchq")
_LEFT_BEHIND = {"worktree.dirty", "worktree.unseen"}
# Warnings that stay when a proposal is rebuilt: the first two are written anew, the third says how
# little the response had of its base, the next two why it left its train, and the others, in auto
# mode, why it waits at all.
_KEPT = (
    PENDING_CONFLICT,
    CHANGES,
    "base.unknown",
    "hook.refused",
    "hook.timeout",
    *_LEFT_BEHIND,
)

_PIECE = 16  # proposals that are looked at, and made again, at once: they share their flushes


def settle(session: Session, *, rest: bool = True, seconds: float = inf) -> bool:
    """Record what plain git did, restack waiting proposals, and name their overlaps.

    Return True if that is done, as far as it can be now.  Nothing is read twice while no branch
    moves.  What only follows its target comes last, and is left for another time without `rest`; so
    is what remains after about so many `seconds`.
    """
    if session.branches.away:
        return True  # what was fetched last may be old; they are looked at again
    catch_up(session)
    waits, until, over = board.known(session), monotonic() + seconds, True
    for piece in _pieces(session, waits.settled, rest=rest):
        reports.reconcile(session, piece)
        follow(session, piece)
        if session.signer.resting:
            break  # they are looked at again
        waits.settled |= piece
        if monotonic() >= until:
            over = False
            break
    most = None if seconds == inf else 4 * _PIECE
    return over and (not waits.is_due or overlaps.refresh(session, most=most))


def _pieces(
    session: Session, settled: Mapping[str, Refs], *, rest: bool
) -> Iterator[dict[str, Refs]]:
    """Yield the proposals to look at, in pieces, until none has moved."""
    while todo := _moved(places := _places(session), settled, rest=rest):
        for first in range(0, len(todo), _PIECE):
            yield {id: places[id] for id in todo[first : first + _PIECE]}


def _moved(places: Mapping[str, Refs], settled: Mapping[str, Refs], *, rest: bool) -> list[str]:
    """Return the proposals to look at.

    Those of which only the target moved come last, and are left out without `rest`.
    """
    todo = [id for id, place in places.items() if settled.get(id) != place]
    own = {id for id in todo if settled.get(id, ())[1:] != places[id][1:]}
    return sorted((id for id in todo if rest or id in own), key=lambda id: id not in own)


def _places(session: Session) -> dict[str, Refs]:
    """Return the refs of each proposal, its target and the one below."""
    repo, waits = session.repo, board.waiting(session)
    if not waits:
        return {}
    branches, boarded = session.branches.tips(records.branch("")), repo.refs(records.BOARDED)
    at = defaultdict[str, list[str]](list)
    for gitdir, ref in heads(repo.commondir):
        at[ref].append(str(gitdir))
    own: dict[str, Refs] = {
        id: (
            mark,
            branches.get(records.branch(id)),
            boarded.get(records.BOARDED + id),
            *at[records.BRANCHES + id],
        )
        for id, mark in waits.items()
    }
    # Once the one below waits no more, any other that comes may have taken its place.
    others = (sha256(" ".join(sorted(waits)).encode()).hexdigest(),)
    there, places = board.current(session, waits), dict[str, Refs]()
    tips = {name: session.branches.tip(name) for name in {one.target for one in there.values()}}
    for id, refs_of in own.items():
        change = there.get(id)
        on = change.on if change else None
        below = own.get(on, others)[:2] if on else ()
        places[id] = (tips[change.target] if change else None, *refs_of, on, *below)
    return places


class _Step(Struct, frozen=True):
    """The next step of a proposal: its refs go to `commit`, its report to `updated`."""

    id: str
    branch: str
    waits: str
    commit: str
    updated: Report


def follow(session: Session, ids: Collection[str] | None = None) -> dict[str, str]:
    """Rebuild these proposals on the tips of their targets, or report the failure.

    By default, all.  Return the commits of those that were rebuilt.  What has boarded belongs to
    its train, if the forge does not merge it.
    """
    steps = list[_Step]()
    boarded = {} if session.config.merges_there else session.repo.refs(records.BOARDED)
    for report in list(history.waiting(session, ids)):
        if records.BOARDED + report.id in boarded:
            continue
        try:
            step = _step(report, session)
        except ObjectDamaged as damage:  # it stays as it is, and is looked at again
            _LOG.warning("%s: %s", report.id, damage.message, extra={"batch": report.id})
            continue
        steps += [step] if step else []
    return _take(steps, session)


def with_edits(
    session: Session, report: CommittedReport, choice: Choice
) -> CommittedReport | tuple[Problem, ...]:
    """Rebuild a proposal with the chosen edits alone, or return the problems.

    Raises `Busy` if the proposal changed meanwhile.
    """
    decision = _decided(report, session, choice)
    if not decision.commit:
        return errors_of(decision)
    commit, branch = decision.commit, report.commit
    step = _Step(report.id, branch, branch, commit, _made_again(report, decision, commit))
    if not _take([step], session):
        raise Busy(f"{report.id} was changed meanwhile", "look at it as it is now, then decide")
    made = session.queue.load(report.id)
    assert made
    assert has_commit(made)
    return made


def _take(steps: Sequence[_Step], session: Session) -> dict[str, str]:
    if not steps:
        return {}
    commits = [commit for step in steps for commit in (step.commit, step.waits)]
    with refs.staged(session.repo, commits):
        flush(session)
        with reports.locked(session):
            steps = [step for step in steps if _as_before(step, session)]
            return _carry_out(steps, session)


def _step(report: CommittedReport, session: Session) -> _Step | None:
    repo, id = session.repo, report.id
    sighting = history.observe(session, report)
    tip, branch = (session.branches.tip(name) for name in (report.target, records.branch(id)))
    waits = repo.ref_target(records.WAITING + id)
    if report.state != "proposed" or sighting.state != "proposed" or sighting.commit:
        return None
    if tip is None or branch is None or waits is None:
        return None
    # On top of the tip, or of the proposal below it, and of nothing else: a commit that was taken
    # back must not land with it.
    footing = depends.under(session, report)
    follows = repo.parents(branch) == (footing.commit,)
    agree = report.commit == branch == waits
    if agree and not follows and _knows(report, footing):
        return None
    problems = [problem for problem in report.problems if problem.code != _MOVED]
    commit, tree = branch, repo.tree(branch).root
    updated: Report = replace(report, commit=branch, tree=tree, problems=problems)
    if follows:
        below = footing.on and footing.commit and StandsOn(footing.on, footing.commit)
        updated = replace(updated, stands_on=below or None)
    stays: Problem | None = None
    if not follows and (where := session.branches.checkouts(records.branch(id))):
        stays = _checked_out(report, footing, where[0].workdir)
    elif not follows or report.commit != branch:
        if session.signer.resting:
            return None
        try:
            decision = _decided(report, session, choice_of(report))
        except Fault as fault:  # its response is lost
            decision, message = None, _since(report, footing) + fault.message
            stays = Problem(_MOVED, message, fault.hint, severity="warning")
        if decision and decision.commit:
            # The branch's commit may be the same: a crash came before its report.
            before = repo.parents(branch), repo.tree(branch).root
            same = before == ((decision.tip,), decision.tree)
            commit = branch if same else decision.commit
            updated = _made_again(report, decision, commit)
        elif decision and decision.state == "held" and not _lost(decision):
            return None  # a work tree rebases the target, which moves again soon; or no signature
        elif decision:
            stays = _stays(report, footing, decision)
    if stays:
        updated = document.with_problems(updated, stays)
    if agree and commit == branch and updated == report:
        return None
    return _Step(id, branch, waits, commit, updated)


def _decided(report: CommittedReport, session: Session, choice: Choice) -> Decision:
    """Return the decision on the change in its new place.

    Raises `Fault` if its response is lost.  The judges in this process are asked; the verdicts of
    other hooks stay with its tree.
    """
    decision = process(claim_of(report, session), session, Tips(session), choice)
    if report.stands_on and decision.commit:
        decision = _on_new_ground(decision, session)
    (decision,) = presubmit.check([decision], session, session.hooks.judges)
    return decision


def _on_new_ground(decision: Decision, session: Session) -> Decision:
    """Return the decision based on the tip, if that gives the same tree.

    The base before is in no history any more, and git may delete it.
    """
    base, repo = decision.base, session.repo
    if base.how == "declared" or repo.is_ancestor(base.commit, decision.tip):
        return decision
    choice = replace(decision.choice, base=Base(decision.tip, base.how))
    again = process(decision.claim, session, Tips(session), choice)
    same = again.commit and (again.tip, again.tree) == (decision.tip, decision.tree)
    return again if same else decision


def _made_again(report: Report, decision: Decision, commit: str) -> Report:
    again = decision.report
    new = {run.id for run in again.hooks}
    codes = {problem.code for problem in again.problems}
    codes |= set() if report.mode == "auto" else _LEFT_BEHIND
    kept = [p for p in report.problems if p.code in _KEPT and p.code not in codes]
    return document.with_state(
        report,
        "proposed",
        base=again.base,
        commit=commit,
        tree=again.tree,
        stands_on=again.stands_on,
        edits=again.edits,
        problems=[*again.problems, *kept],
        message=again.message,
        hooks=[*(run for run in report.hooks if run.id not in new), *again.hooks],
        size=again.size,
        diff=again.diff,
    )


# ---------------------------------------------------------------- the moves


def _as_before(step: _Step, session: Session) -> bool:
    moves, name = step.commit != step.branch, records.branch(step.id)
    if session.repo.ref_target(records.WAITING + step.id) != step.waits:
        return False
    busy = moves and session.branches.checkouts(name)
    return not busy and reports.is_as_before(session, step.id, step.branch)


def _carry_out(steps: Sequence[_Step], session: Session) -> dict[str, str]:
    shared = session.queue.proposals() or {}
    moved = [step for step in steps if _swap(step, step.waits, session)]
    if any(step.waits != step.commit for step in moved):
        files.barrier(session.repo.commondir)
        session.queue.mark({step.id: step.commit for step in moved})
    done = [step for step in moved if step.branch == step.commit]
    to_move = [step for step in moved if step.branch != step.commit]
    who = session.identity()
    moves = [
        BranchMove(records.branch(step.id), step.branch, step.commit, _log(step), who)
        for step in to_move
    ]
    for step, moved_to in zip(to_move, session.branches.land(moves) if moves else (), strict=True):
        if moved_to.made:
            done.append(step)
        else:  # a person was quicker, or who served the branch before and was taken for dead
            _swap(replace(step, commit=step.waits), step.commit, session)
            session.queue.mark({step.id: shared.get(step.id) or step.waits})
    if any(step.branch != step.commit for step in done):
        files.barrier(session.repo.commondir)
    for step in done:
        made = reports.put(session, _beside(step, session.queue.load(step.id), session))
        if waits_for_its_agent(made):
            notes.add(session, made, before=step.branch)
    session.queue.sync()
    return {step.id: step.commit for step in done}


def _beside(step: _Step, now: Report | None, session: Session) -> Report:
    """Return the updated report, with what others wrote there meanwhile.

    They are the overlaps with other batches, and what people ask for.
    """
    if now is None:
        return step.updated
    own = (PENDING_CONFLICT, CHANGES)
    named = [p for p in now.problems if p.code in own]
    others = [p for p in step.updated.problems if p.code not in own]
    made: Report = replace(step.updated, problems=[*others, *named], retry=now.retry)
    review = now.review
    if review is None or not waits_for_its_agent(now):
        return replace(made, review=review)
    if now.commit:
        review = comments.carried(session.repo, review, now.commit, step.commit)
    return comments.with_review(session.repo, made, review)


def _swap(step: _Step, old: str, session: Session) -> bool:
    name, who = records.WAITING + step.id, session.identity()
    return old == step.commit or refs.move(session.repo, name, old, step.commit, _log(step), who)


def _log(step: _Step) -> str:
    on = step.updated.stands_on
    where = records.branch(on.batch) if on else step.updated.target
    return f"patchq: {step.id}: made again on {where}"


# ---------------------------------------------------------------- what stays where it is

_MOVED = "target.moved"


def _lost(decision: Decision) -> Problem | None:
    """Return the problem of a change that has lost its place."""
    return next((p for p in decision.problems if p.code == "depends.failed"), None)


def _knows(report: Report, footing: Stack) -> bool:
    start = _since(report, footing)
    return any(p.code == _MOVED and p.message.startswith(start) for p in report.problems)


def _place(report: Report, footing: Stack) -> str:
    return records.branch(footing.on) if footing.on else report.target or ""


def _since(report: Report, footing: Stack) -> str:
    if footing.commit is None:
        return f"the change cannot stay where it is ({footing.why}): "
    moved = f"{_place(report, footing)} moved to {footing.commit[:12]}"
    return f"{moved}, and the change cannot be rebuilt there: "


def _stays(report: Report, footing: Stack, decision: Decision) -> Problem:
    id, error = report.id, Problem("match.identical", "nothing is left to land")
    hint = f"`patchq discard {id}` ends it"
    if decision.state != "duplicate":
        error = _lost(decision) or errors_of(decision)[0]
        hint = f"`patchq retry {id}` decides on its response anew, {hint}"
        if footing.commit:
            hint += f"; or send it again with `retries: {id}` and `base: {footing.commit[:12]}`"
    message = f"{_since(report, footing)}{error.code}: {error.message}"
    return replace(error, code=_MOVED, message=message, hint=hint, severity="warning")


def _checked_out(report: Report, footing: Stack, where: Path) -> Problem:
    id, to = report.id, (footing.commit or "")[:12]
    follows = _place(report, footing)
    return Problem(
        _MOVED,
        f"{records.branch(id)} is checked out in {where}, so it does not follow {follows}"
        + (f" to {to}" if to else f" ({footing.why})"),
        f"check out another branch there, then `patchq retry {id}`",
        severity="warning",
    )
