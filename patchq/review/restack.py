"""Proposals follow their target: when it moves, each is made again on the new tip, or asks for a
retry.

A crash may come between any two steps.  The order tells what a leftover is:

    objects | flush | refs/patchq/waiting/<id> | flush | refs/heads/patchq/<id> | flush | report

Only patchq writes the first ref, so a branch that holds what either it or the report says is
patchq's own, and anything else is a person's and never moved.  A batch whose two refs and report do
not agree is made again the next time.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

from patchq.git import files, records, refs
from patchq.git.checkout import checkouts
from patchq.git.reffiles import heads
from patchq.git.refs import Staged
from patchq.git.repository import Repository
from patchq.land import collisions, presubmit, reports
from patchq.model.errors import Fault, ObjectDamaged, UsageError
from patchq.model.report import IDLE, PENDING_CONFLICT, CommittedReport, Report
from patchq.model.values import Base, Problem, Source
from patchq.pipeline import traces
from patchq.pipeline.ground import flush
from patchq.pipeline.process import process
from patchq.pipeline.progress import Decision
from patchq.pipeline.world import Choice, Tips, World
from patchq.queue import Claim
from patchq.report import document

_LOG = logging.getLogger("patchq")
_MOVED = "target.moved"
_LEFT_BEHIND = {"worktree.dirty", "worktree.unseen"}
_KEPT = (PENDING_CONFLICT, "base.unknown", *_LEFT_BEHIND)
"""Warnings that stay when a batch is made again: the first is computed anew, the second says how
little the response had said, and the others, in auto mode, why it waits at all."""

_settled: WeakKeyDictionary[Repository, Hashable] = WeakKeyDictionary()
"""What `settle` saw when it last had nothing left to do."""


def settle(world: World) -> None:
    """Put down what was done by plain git, have what waits follow its target, and name who collides
    with whom.  Nothing is read twice while no branch moves."""
    branches = _branches(world)
    if branches is None or _settled.get(world.repo) == branches:
        return
    reports.reconcile(world)
    follow(world)
    collisions.refresh(world)
    if _branches(world) == branches and not world.signer.resting:
        _settled[world.repo] = branches


def _branches(world: World) -> Hashable:
    repo = world.repo
    waits = repo.refs(records.WAITING)
    if not waits:
        return None
    return (
        frozenset(waits.items()),
        frozenset(repo.branches("").items()),
        tuple(heads(repo.commondir)),
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to become of a proposal: its refs go to `commit`, its report to `updated`."""

    id: str
    branch: str
    waits: str
    commit: str
    updated: Report


def follow(world: World, targets: Collection[str] | None = None) -> None:
    """Make the proposals for these branches (all) again on their tips, or say why that fails."""
    steps = []
    for report in list(traces.waiting(world)):
        if targets is None or report["target"] in targets:
            try:
                step = _step(report, world)
            except ObjectDamaged as damage:  # it stays as it is, and is looked at again
                _LOG.warning("%s: %s", report["id"], damage.message, extra={"batch": report["id"]})
                continue
            steps += [step] if step else []
    if steps:
        with _staged(steps, world) as values:
            flush(world)
            with reports.locked(world):
                _carry_out([step for step in steps if _as_before(step, world)], values, world)


def _step(report: CommittedReport, world: World) -> _Step | None:
    """None where nothing is to do, or a person has to do it."""
    repo, id = world.repo, report["id"]
    sighting = traces.observe(world, report)
    tip, branch = repo.branch_tip(report["target"]), repo.branch_tip(records.branch(id))
    waits = repo.ref_target(records.WAITING + id)
    if report["state"] != "proposed" or sighting.state != "proposed" or sighting.commit:
        return None
    if tip is None or branch is None or waits is None:
        return None
    # On top of the tip and of nothing else: a commit that was taken back must not land with it.
    follows, agree = repo.parents(branch) == (tip,), report["commit"] == branch == waits
    if agree and not follows and _knows(report, tip):
        return None
    problems = [problem for problem in report["problems"] if problem["code"] != _MOVED]
    commit, tree = branch, repo.tree(branch).root
    updated: Report = {**report, "commit": branch, "tree": tree, "problems": problems}
    if not follows and (where := checkouts(repo, records.branch(id))):
        updated = document.with_problems(updated, _checked_out(report, tip, where[0].workdir))
    elif not follows or report["commit"] != branch:
        if world.signer.resting:
            return None
        decision = _decided(report, world)
        if isinstance(decision, Fault):
            message = _since(report, tip) + decision.message
            updated = document.with_problems(
                updated, Problem(_MOVED, message, decision.hint, severity="warning")
            )
        elif decision.candidate:
            # The branch's commit may be what the candidate is: a crash came before its report.
            before, candidate = (repo.parents(branch), repo.tree(branch).root), decision.candidate
            same = before == ((candidate.parent,), candidate.tree)
            commit = branch if same else candidate.commit
            updated = _made_again(report, decision, commit)
        elif decision.state == "held":
            return None  # a work tree rebases the target, which moves again soon; or no signature
        else:
            updated = document.with_problems(updated, _stays(report, tip, decision))
    if agree and commit == branch and updated == report:
        return None
    return _Step(id, branch, waits, commit, updated)


def _decided(report: CommittedReport, world: World) -> Decision | Fault:
    """The batch on the target's tip; the fault if the queue does not hold what it was made from."""
    try:
        claim, choice = claim_of(report, world), choice_of(report)
    except Fault as fault:
        return fault
    decision = process(claim, world, Tips(world), choice)
    if world.hooks.fixing:  # `accept` asks the others, about the tree that lands
        (decision,) = presubmit.check([decision], world).kept
    return decision


def choice_of(report: CommittedReport) -> Choice:
    """How a batch was taken: on its base, with the edits that were not left out; `UsageError` if
    the report has no room for all of them, and so does not tell."""
    idle = [edit for edit in report["edits"] if edit["state"] in IDLE]
    if idle and (report["edits"][-1]["description"] or "").endswith("edits are left out here)"):
        raise UsageError(
            f"batch {report['id']} has more edits than its report holds, and some were not taken",
            "send the wanted ones in a new response",
        )
    wanted = frozenset(edit["id"] for edit in report["edits"] if edit not in idle) if idle else None
    # A backup has the id of the edit that it stands behind.
    left = {edit["id"]: edit["cancelled_by"] for edit in idle if edit["id"] not in (wanted or ())}
    base = report["base"]
    return Choice(
        edits=wanted,
        left=left,
        base=Base(base["commit"], base["how"] or "tip"),
        target=report["target"],
    )


def claim_of(report: Report, world: World) -> Claim:
    """The response of a batch, to be decided on again; `Fault` if the queue has lost it."""
    source, body = report["source"], world.queue.body(report["id"])
    if body is None:
        raise Fault(
            f"the response of {report['id']} is gone from the queue",
            "restore `.patchq/` from a backup, or discard the batch",
        )
    return Claim(
        "",
        Source(source["name"] or "", source["sha256"], source["bytes"] or 0),
        body,
        id=report["id"],
    )


def _made_again(report: Report, decision: Decision, commit: str) -> Report:
    """The report on the batch as it was made again; what came of its delivery stays."""
    again = document.to_json(decision.outcome())
    codes = {problem["code"] for problem in again["problems"]}
    codes |= set() if report["mode"] == "auto" else _LEFT_BEHIND
    kept = [p for p in report["problems"] if p["code"] in _KEPT and p["code"] not in codes]
    return document.with_state(
        report,
        "proposed",
        commit=commit,
        tree=again["tree"],
        edits=again["edits"],
        problems=[*again["problems"], *kept],
        hooks=again["hooks"],
        diff=again["diff"],
    )


# ---------------------------------------------------------------- what cannot follow


def _knows(report: Report, tip: str) -> bool:
    """Whether the report says already that the batch cannot be made on this tip."""
    start = _since(report, tip)
    return any(p["code"] == _MOVED and p["message"].startswith(start) for p in report["problems"])


def _since(report: Report, tip: str) -> str:
    return f"{report['target']} moved to {tip[:12]}, and the batch cannot be made again there: "


def _stays(report: Report, tip: str, decision: Decision) -> Problem:
    id = report["id"]
    if decision.state == "duplicate":
        return Problem(
            _MOVED,
            _since(report, tip) + "all that it changes is there already",
            f"nothing is left to land: `patchq discard {id}`",
            severity="warning",
        )
    error = next(problem for problem in decision.problems if problem.severity == "error")
    return replace(
        error,
        code=_MOVED,
        message=f"{_since(report, tip)}{error.code}: {error.message}",
        hint=f"send it again with `retries: {id}` and `base: {tip[:12]}`, made on "
        f"{report['target']} as it is now; or `patchq retry {id}` once what is in its way is gone",
        severity="warning",
    )


def _checked_out(report: Report, tip: str, where: Path) -> Problem:
    id = report["id"]
    return Problem(
        _MOVED,
        f"{records.branch(id)} is checked out in {where}, so it does not follow "
        f"{report['target']} to {tip[:12]}",
        f"check out another branch there, then `patchq retry {id}`",
        severity="warning",
    )


# ---------------------------------------------------------------- the moves


@contextmanager
def _staged(steps: Sequence[_Step], world: World) -> Iterator[Mapping[str, Staged]]:
    """The ids that refs move to, each written once."""
    oids = {oid for step in steps for oid in (step.commit, step.waits)}
    values: dict[str, Staged] = {}
    try:
        for oid in oids:
            values[oid] = refs.stage(world.repo, oid)
        yield values
    finally:
        for value in values.values():
            value.drop()


def _as_before(step: _Step, world: World) -> bool:
    """Whether nobody decided on the batch, or touched its branch, since it was looked at."""
    report, repo, name = world.queue.load(step.id), world.repo, records.branch(step.id)
    return (
        report is not None
        and report["state"] == "proposed"
        and repo.branch_tip(name) == step.branch
        and repo.ref_target(records.WAITING + step.id) == step.waits
        and (step.commit == step.branch or not checkouts(repo, name))
    )


def _carry_out(steps: Sequence[_Step], values: Mapping[str, Staged], world: World) -> None:
    """Move the refs and rewrite the reports; the lock on the reports is held."""
    moved = [step for step in steps if _swap(records.WAITING, step, step.waits, values, world)]
    if any(step.waits != step.commit for step in moved):
        files.barrier(world.repo.commondir)
    done = []
    for step in moved:
        if _swap(records.BRANCHES, step, step.branch, values, world):
            done.append(step)
        else:  # a person was quicker
            _swap(records.WAITING, replace(step, commit=step.waits), step.commit, values, world)
    if any(step.branch != step.commit for step in done):
        files.barrier(world.repo.commondir)
    for step in done:
        now = world.queue.load(step.id)
        named = [p for p in now["problems"] if p["code"] == PENDING_CONFLICT] if now else []
        others = [p for p in step.updated["problems"] if p["code"] != PENDING_CONFLICT]
        reports.put(world, {**step.updated, "problems": [*others, *named]})
    world.queue.sync()


def _swap(prefix: str, step: _Step, old: str, values: Mapping[str, Staged], world: World) -> bool:
    if old == step.commit:
        return True
    log = f"patchq: {step.id}: made again on {step.updated['target']}"
    return refs.move(world.repo, prefix + step.id, old, values[step.commit], log, world.identity())
