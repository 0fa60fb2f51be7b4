"""`patchq status`: whether a daemon runs, what waits, what is held and why."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from patchq.cli import arguments, batches, output, places
from patchq.git.checkout import busy
from patchq.model.errors import CRASHED, CannotSign, ObjectDamaged
from patchq.model.report import PENDING_CONFLICT, CollisionEntry, Report
from patchq.pipeline import dependencies, traces
from patchq.pipeline.ground import Ground
from patchq.pipeline.traces import Sighting
from patchq.queue.lock import lock_owner
from patchq.review import from_git
from patchq.service.doctor import beside
from patchq.text.quote import visible

Needs = Mapping[str, Mapping[str, str | None]]
"""The batches that are held for others: id -> each that has not landed, with its state."""


_WITH_CURE = (ObjectDamaged.code, CRASHED, CannotSign.code, "worktree.unseen")
ARGUMENTS = (arguments.Argument("id", metavar="ID", nargs="?", help="one batch only"),)


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    if args.id is not None:
        report, note = batches.seen(ground, *batches.find(ground, args.id))
        line = output.line(report) + (f"  ({note})" if note else "")
        return output.emit(args, {**report, "note": note}, line)
    answer = overview(ground)
    return output.emit(args, answer, *_lines(answer))


def overview(ground: Ground) -> dict[str, Any]:
    """How the queue stands, as `status --json` has it."""
    owner = lock_owner(ground.queue_root)
    doing = busy(ground.repo, ground.target) if ground.target else None
    needs = dependencies.held(ground)
    known = list(traces.waiting(ground))
    lost = from_git.waiting(ground, [report["id"] for report in known])
    waiting: list[tuple[Report, Sighting]] = [(r, traces.observe(ground, r)) for r in known]
    waiting += [(r, Sighting("proposed", from_git.SAYS_SO)) for r in lost]
    there = {report["id"] for report, seen in waiting if seen.state == "proposed"}
    return {
        "target": ground.target or None,
        "mode": ground.config.mode,
        "daemon": {"pid": owner.pid, "since": owner.since and _time(owner.since)}
        if owner
        else None,
        "inbox": ground.queue.depth(),
        "busy": doing,
        "troubles": [
            {"what": found.what, "why": found.message, "cure": found.cure}
            for found in (
                *beside.ended(ground.queue_root),
                *beside.short(ground.repo.commondir, ground.queue_root),
                *beside.work_trees(ground.repo),
                *beside.noted(ground.queue_root, ground.config),
            )
        ],
        "held": [_held(claim.id, needs, ground) for claim in ground.queue.held() if claim.id],
        "waiting": [_waiting(report, seen, there, needs) for report, seen in waiting],
    }


def _held(id: str, needs: Needs, ground: Ground) -> dict[str, Any]:
    report = ground.queue.load(id)
    problems = report["problems"] if report else []
    why = problems[-1] if problems else {"code": None, "message": "not looked at yet", "hint": None}
    return {
        "id": id,
        "code": why["code"],
        "why": why["message"],
        "hint": why["hint"],
        "waits_for": [{"id": other, "state": state} for other, state in needs.get(id, {}).items()],
        "waited_for_by": _waited_for_by(id, needs),
    }


def _waiting(
    report: Report, seen: Sighting, there: Collection[str], needs: Needs
) -> dict[str, Any]:
    return {
        "id": report["id"],
        "state": seen.state,
        "note": seen.note,
        "branch": report["branch"],
        "target": report["target"],
        "agent": report["agent"],
        "paths": list(dict.fromkeys(edit["path"] for edit in report["edits"])),
        "warnings": [p["code"] for p in report["problems"]],
        "needs_retry": next(
            (p["message"] for p in report["problems"] if p["code"] == "target.moved"), None
        ),
        "collides": [
            {"edit": p["edit"], **other}
            for p in report["problems"]
            if p["code"] == PENDING_CONFLICT
            and (other := p["conflicts_with"])
            and other["batch"] in there
        ],
        "waited_for_by": _waited_for_by(report["id"], needs),
    }


def _waited_for_by(id: str, needs: Needs) -> list[str]:
    return [other for other, named in needs.items() if id in named]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    daemon = answer["daemon"]
    runs = f"runs since {daemon['since']}, process {daemon['pid']}" if daemon else "does not run"
    yield f"daemon   {runs}"
    yield f"target   {answer['target'] or 'none: HEAD is on no branch'} ({answer['mode']} mode)" + (
        f", busy: a work tree is {answer['busy']}" if answer["busy"] else ""
    )
    yield f"inbox    {answer['inbox']} waiting"
    for trouble in answer["troubles"]:
        yield visible(f"trouble  {trouble['what']}: {trouble['why']}")
        yield from _edge("cure:", [trouble["cure"]])
    for held in answer["held"]:
        yield visible(f"held     {held['id']}  {held['code']}: {held['why']}")
        cure = held["hint"] if held["code"] in _WITH_CURE else None
        yield from _edge("cure:", [cure] if cure else [])
        others = [other["id"] for other in held["waits_for"]]
        yield from _edge("waits for", others if len(others) > 1 else [])
        yield from _edge("waited for by", held["waited_for_by"])
    for batch in answer["waiting"]:
        note = f"  ({batch['note']})" if batch["note"] else ""
        codes = "".join(f"  [{code}]" for code in dict.fromkeys(batch["warnings"]))
        paths = ", ".join(batch["paths"][:3])
        yield visible(f"{batch['state']:<8} {batch['branch']}  {paths}{codes}{note}")
        yield from _edge("needs a retry:", [batch["needs_retry"]] if batch["needs_retry"] else [])
        yield from _edge("collides with", [_place(other) for other in batch["collides"]])
        yield from _edge("waited for by", batch["waited_for_by"])


def _edge(what: str, others: Sequence[str]) -> Iterator[str]:
    """A line below a batch that says how it stands to others."""
    if others:
        yield visible(f"           {what} {', '.join(others)}")


def _place(other: CollisionEntry) -> str:
    lines = "-".join(map(str, dict.fromkeys(other["lines"] or ())))
    by = f" of {other['agent']}" if other["agent"] else ""
    return f"{other['batch']}{by} ({other['path']}{':' if lines else ''}{lines})"
