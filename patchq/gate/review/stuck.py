"""The warning that a proposal stays where it is while the one below it moves."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.git import records
from patchq.gate.pipeline.depends import Stack
from patchq.gate.pipeline.progress import Decision
from patchq.gate.report.schema import Report

MOVED = "target.moved"


def lost(decision: Decision) -> Problem | None:
    """Return why a proposed batch has to wait for one that it depends on."""
    return next((p for p in decision.problems if p.code == "depends.failed"), None)


def knows(report: Report, footing: Stack) -> bool:
    """Return True if the report says already that the batch cannot be made in its new place."""
    start = since(report, footing)
    return any(p.code == MOVED and p.message.startswith(start) for p in report.problems)


def since(report: Report, footing: Stack) -> str:
    if footing.commit is None:
        return f"the change cannot stay where it is ({footing.why}): "
    where = report.target if footing.on is None else records.branch(footing.on)
    return f"{where} moved to {footing.commit[:12]}, and the change cannot be rebuilt there: "


def stays(report: Report, footing: Stack, decision: Decision) -> Problem:
    id, start = report.id, since(report, footing)
    if decision.state == "duplicate":
        return Problem(
            MOVED,
            start + "all that it changes is there already",
            f"nothing is left to land: `patchq discard {id}`",
            severity="warning",
        )
    gone = lost(decision)
    error = gone or next(p for p in decision.problems if p.severity == "error")
    hint = f"`patchq discard {id}`, or send it again with `retries: {id}` without what is gone"
    if footing.commit:
        where = report.target if footing.on is None else records.branch(footing.on)
        hint = (
            f"send it again with `retries: {id}` and `base: {footing.commit[:12]}`, made on "
            f"{where} as it is now; or `patchq retry {id}` once what is in its way is gone"
        )
    return replace(
        error,
        code=MOVED,
        message=f"{start}{error.code}: {error.message}",
        hint=hint,
        severity="warning",
    )


def checked_out(report: Report, footing: Stack, where: Path) -> Problem:
    id, to = report.id, (footing.commit or "")[:12]
    follows = report.target if footing.on is None else records.branch(footing.on)
    return Problem(
        MOVED,
        f"{records.branch(id)} is checked out in {where}, so it does not follow {follows}"
        + (f" to {to}" if to else f" ({footing.why})"),
        f"check out another branch there, then `patchq retry {id}`",
        severity="warning",
    )
