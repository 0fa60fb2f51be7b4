"""What a person did to a proposal by plain git, and the reports that say so.

A branch that was merged, rebased, deleted or changed by hand is seen wherever a batch is looked at
(`traces.observe`); `reconcile` puts it down.
"""

from __future__ import annotations

from typing import Unpack

from patchq.git import records, refs, worktree
from patchq.land import reports
from patchq.model.errors import UsageError
from patchq.model.report import LANDED, PENDING_CONFLICT, CommittedReport, Report, ReportChanges
from patchq.model.values import Problem, State
from patchq.pipeline import notes, traces
from patchq.pipeline.world import World
from patchq.report import document

_WHILE_IT_WAITS = (PENDING_CONFLICT, "target.moved")
"""Warnings that say nothing any more once a batch is decided."""


def reconcile(world: World) -> list[Report]:
    """Put down in the reports what was done by plain git; returns the ones that changed."""
    changed = []
    for report in list(traces.waiting(world)):
        sighting, id = traces.observe(world, report), report["id"]
        if sighting.state == "proposed":
            if sighting.commit and not any(p["code"] == "target.moved" for p in report["problems"]):
                updated = reports.amend(world, id, _say_not_ours)
                changed += [updated] if updated else []
            continue
        commit = sighting.commit or report["commit"]
        if sighting.state in LANDED:
            log = f"patchq: {id}: {sighting.note or sighting.state}"
            refs.move(world.repo, records.landed(id), None, commit, log, world.identity())
        tree = world.repo.tree(commit).root
        tip = world.repo.branch_tip(records.branch(id))
        changed.append(
            close(world, report, sighting.state, tip, sighting.note, commit=commit, tree=tree)
        )
    return changed


def _say_not_ours(report: Report) -> Report | None:
    id = report["id"]
    if report["state"] != "proposed":
        return None
    problem = Problem(
        "target.moved",
        f"{records.branch(id)} was changed by hand, so patchq does not make it again when the "
        "target moves",
        f"`patchq accept {id}` lands it as it stands; `patchq retry {id}` makes the response anew "
        "and leaves the branch to you",
        severity="warning",
    )
    return document.with_problems(report, problem)


def close(
    world: World,
    report: CommittedReport,
    state: State,
    tip: str | None,
    reason: str = "",
    **fields: Unpack[ReportChanges],
) -> Report:
    """End the waiting of a batch: its branch goes if it is still at `tip` and nobody has it
    checked out, its report and its note get the later state; returns the report.

    The mark that it waits goes last, so that `reconcile` finds what a crash leaves.
    """
    id, repo = report["id"], world.repo
    with reports.locked(world):
        now = world.queue.load(id) or report
        stands = traces.observe(world, now).state if state == "discarded" else state
        if stands not in ("proposed", state):
            raise UsageError(f"batch {id} does not wait for review: it is {stands}")
        if state == "discarded":
            last, log = tip or report["commit"], f"patchq: {id}: {reason or state}"
            refs.move(repo, records.discarded(id), None, last, log, world.identity())
        waits = repo.ref_target(records.waiting(id))
        if not worktree.checkouts(repo, records.branch(id)):
            for own in filter(None, {tip, waits}):
                refs.delete(repo, records.branch_ref(id), own)
        updated = _rewritten(world, now, state, reason, fields)
        if waits:
            refs.delete(repo, records.waiting(id), waits)
    return updated


def rewrite(
    world: World, report: Report, state: State, reason: str = "", **fields: Unpack[ReportChanges]
) -> Report:
    """Put down a later state of a batch that does not wait any more; returns the new report."""
    with reports.locked(world):
        return _rewritten(world, world.queue.load(report["id"]) or report, state, reason, fields)


def _rewritten(
    world: World, now: Report, state: State, reason: str, fields: ReportChanges
) -> Report:
    problems = [problem for problem in now["problems"] if problem["code"] not in _WHILE_IT_WAITS]
    changes: ReportChanges = {"problems": problems, **fields}
    updated = document.with_state(now, state, **changes)
    reports.put(world, updated)
    world.queue.sync()
    notes.add(world, updated, reason)
    return updated
