"""`conflict.pending`: proposals for one target that cannot both land as they are.

Two batches that wait collide where their changed lines share a line or border on each other, and
where one of them makes or removes a file that the other one touches.  Both reports say so, each
with the other's edit and lines.  It is a warning: whichever is accepted first lands, and the other
is made again on top of it or asks for a retry.

Everything is computed from the commits that wait, so a report that a crash left behind is put right
by the next `refresh`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

from patchq.git import records
from patchq.git.repository import Repository
from patchq.land import reports, supersede
from patchq.model.report import PENDING_CONFLICT, ProblemEntry, Report, has_commit
from patchq.model.values import Collision, Problem
from patchq.pipeline.decision import CandidateCommit, Decision
from patchq.pipeline.rebase.lines import in_words
from patchq.pipeline.rebase.overlaps import Proposal, ProposedChange, changes, collisions
from patchq.pipeline.world import World
from patchq.report import document

_MOST_BATCHES = 16
"""Other batches that a report names; what waits beyond them would only be rewritten again and again
as more come."""
_MOST_PLACES = 4
"""Pairs of edits that are named of each."""

_known: WeakKeyDictionary[Repository, dict[tuple[str, str], Proposal | None]] = WeakKeyDictionary()
"""What waits, by id and commit: reading each report again for each response would cost the square
of them."""


def warned(decisions: Sequence[Decision], world: World) -> list[Decision]:
    """The decisions, each that proposes with what it collides with: what waits, and the others."""
    proposed = [d for d in decisions if d.state == "proposed" and d.candidate]
    if not proposed:
        return list(decisions)
    board = _board(world)
    for decision in proposed:
        for id in supersede.replaced(decision.id, decision.header, world):
            board.pop(id, None)
    board |= {d.id: _proposal(d, d.candidate, world.repo) for d in proposed if d.candidate}
    by_path = _by_path(board.values())
    made = []
    for decision in decisions:
        if decision.state == "proposed" and decision.candidate:
            others = [p for p in decision.problems if p.code != PENDING_CONFLICT]
            found = _problems(world.repo, board[decision.id], board, by_path)
            decision = replace(decision, problems=(*others, *found))
        made.append(decision)
    return made


def spread(decisions: Sequence[Decision], world: World) -> None:
    """Tell the batches that waited before of those which have landed, and of those superseded."""
    problems = (problem for decision in decisions for problem in decision.problems)
    pending = [problem for problem in problems if problem.code == PENDING_CONFLICT]
    named = {problem.conflicts_with.batch for problem in pending if problem.conflicts_with}
    if any(supersede.may_replace(decision.header) for decision in decisions):
        named |= _beside_what_is_gone(world)
    if named:
        refresh(world, {id for id in named if id})


def _beside_what_is_gone(world: World) -> set[str]:
    """The batches that touch a path of one which waited when this was last looked at."""
    before = _known.get(world.repo)
    if before is None:
        return set(_board(world))
    there = {name.removeprefix(records.WAITING) for name in world.repo.refs(records.WAITING)}
    by_path = _by_path(filter(None, before.values()))
    gone = [proposal for proposal in before.values() if proposal and proposal.id not in there]
    return {
        id for proposal in gone for path in proposal.reach for id in by_path[proposal.target, path]
    }


def refresh(world: World, ids: Collection[str] | None = None) -> None:
    """Have the reports of what waits (`ids`, or all) name what each collides with now."""
    board = _board(world)
    by_path = _by_path(board.values())
    for id in sorted(board.keys() if ids is None else board.keys() & set(ids)):
        report = world.queue.load(id)
        if report is None or report["state"] != "proposed":
            continue
        problems = _problems(world.repo, board[id], board, by_path, named(report))
        if _with(problems, report) is not None:
            reports.amend(world, id, partial(_with, problems))


def named(report: Report) -> list[str]:
    """The batches with which a report says that its batch collides, in its order."""
    others = [p["conflicts_with"] for p in report["problems"] if p["code"] == PENDING_CONFLICT]
    return list(dict.fromkeys(batch for other in others if other and (batch := other["batch"])))


def without(report: Report) -> list[ProblemEntry]:
    """The problems of a report but these."""
    return [problem for problem in report["problems"] if problem["code"] != PENDING_CONFLICT]


def _with(problems: Sequence[Problem], report: Report) -> Report | None:
    """The report with these collisions; None if it has them."""
    if report["state"] != "proposed":
        return None
    updated = document.with_problems({**report, "problems": without(report)}, *problems)
    return updated if updated["problems"] != report["problems"] else None


def _board(world: World) -> dict[str, Proposal]:
    known, board = _known.get(world.repo, {}), {}
    now: dict[tuple[str, str], Proposal | None] = {}
    for name, commit in world.repo.refs(records.WAITING).items():
        key = name.removeprefix(records.WAITING), commit
        now[key] = known[key] if key in known else _read(world, *key)
        proposal = now[key]
        if proposal is not None:
            board[proposal.id] = proposal
    # One whose report is not there yet, or that was decided meanwhile, is looked at again.
    _known[world.repo] = {key: proposal for key, proposal in now.items() if proposal}
    return board


def _read(world: World, id: str, commit: str) -> Proposal | None:
    report = world.queue.load(id)
    if report is None or report["state"] != "proposed" or not has_commit(report):
        return None
    edits = [
        (e["id"], e["path"], (e["lines"][0], e["lines"][1]) if e["lines"] else None)
        for e in report["edits"]
    ]
    base = report["base"]["commit"]
    made = changes(world.repo, commit)
    return Proposal(id, report["target"], report["agent"], commit, base, tuple(edits), made)


def _proposal(decision: Decision, candidate: CandidateCommit, repo: Repository) -> Proposal:
    edits = tuple((edit.id, edit.path, edit.lines) for edit in decision.edits)
    agent, made = decision.header.agent, changes(repo, candidate.commit)
    return Proposal(
        decision.id, candidate.target, agent, candidate.commit, candidate.base, edits, made
    )


def _by_path(proposals: Iterable[Proposal]) -> Mapping[tuple[str, str], list[str]]:
    """The ids of the proposals that touch a path of a target."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for proposal in proposals:
        for path in proposal.reach:
            found[proposal.target, path].append(proposal.id)
    return found


def _problems(
    repo: Repository,
    own: Proposal,
    board: Mapping[str, Proposal],
    by_path: Mapping[tuple[str, str], list[str]],
    first: Sequence[str] = (),
) -> list[Problem]:
    """The warnings for one proposal; others that are named already come `first`, so that a report
    which names as many as it may does not change with each that comes."""
    near = {id for path in own.reach for id in by_path[own.target, path]} - {own.id}
    order = [*(id for id in first if id in near), *sorted(near - set(first))]
    problems: list[Problem] = []
    batches = 0
    for id in order:
        found = list(islice(_warnings(repo, own, board[id]), _MOST_PLACES))
        problems += found
        batches += bool(found)
        if batches == _MOST_BATCHES:
            break
    return problems


def _warnings(repo: Repository, own: Proposal, other: Proposal) -> Iterator[Problem]:
    for ours, theirs in collisions(repo, own, other):
        yield Problem(
            PENDING_CONFLICT,
            _message(ours, theirs, other.id),
            f"nothing to send now: once {other.id} is accepted, this batch is made again on top of "
            "it if it can be, and asks for a retry if not",
            severity="warning",
            edit=ours.edit,
            path=ours.path,
            line=ours.lines and ours.lines[0],
            conflicts_with=Collision(
                other.id, theirs.edit, other.commit, other.agent, theirs.path, theirs.lines
            ),
        )


def _message(ours: ProposedChange, theirs: ProposedChange, other: str) -> str:
    waits = f"batch {other}, which waits for review, too"
    if ours.lines and theirs.lines:
        are = "is" if ours.lines[0] == ours.lines[1] else "are"
        return (
            f"{in_words(ours.lines)} of {ours.path} {are} changed here, and "
            f"{in_words(theirs.lines)} by {waits}"
        )
    return f"this batch {ours.does} {ours.path}, and {waits}, {theirs.does} {theirs.path}"
