"""`patchq status`: whether a daemon runs, what waits, what is held and why."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from patchq import observed, worktree
from patchq.cli import common
from patchq.errors import UsageError
from patchq.queue.directory import lock_owner
from patchq.quote import visible
from patchq.world import World

HELP = "show the daemon, the queue's depth, and what waits or is held"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="one batch only")


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False, writes=False)
    if args.id is not None:
        return _one(args, world)
    told = _overview(world)
    common.emit(args, told, lambda: "\n".join(_lines(told)))
    return 0


def _one(args: Namespace, world: World) -> int:
    told = world.queue.load(args.id)
    if told is None:
        raise UsageError(f"there is no batch {args.id}", "see `patchq log`")
    seen = observed.observe(world, told)
    shown = {**told, "state": seen.state}
    note = f"  ({seen.note})" if seen.note else ""
    common.emit(args, {**shown, "note": seen.note}, lambda: common.line(shown) + note)
    return 0


def _overview(world: World) -> dict[str, Any]:
    owner = lock_owner(world.queue_root)
    busy = worktree.busy(world.repo, world.target)
    return {
        "target": world.target or None,
        "mode": world.config.mode,
        "daemon": {"pid": owner.pid, "since": owner.since and _time(owner.since)}
        if owner
        else None,
        "inbox": world.queue.depth(),
        "busy": busy,
        "held": [_held(claim.id, world) for claim in world.queue.held() if claim.id],
        "waiting": [_waiting(told, world) for told in observed.waiting(world)],
    }


def _held(id: str, world: World) -> dict[str, Any]:
    told = world.queue.load(id)
    problems = told["problems"] if told else []
    why = problems[-1] if problems else {"code": None, "message": "not looked at yet"}
    return {"id": id, "code": why["code"], "why": why["message"]}


def _waiting(told: Any, world: World) -> dict[str, Any]:
    seen = observed.observe(world, told)
    return {
        "id": told["id"],
        "state": seen.state,
        "note": seen.note,
        "branch": told["branch"],
        "target": told["target"],
        "agent": told["agent"],
        "paths": list(dict.fromkeys(edit["path"] for edit in told["edits"])),
        "warnings": [p["code"] for p in told["problems"]],
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _lines(told: dict[str, Any]) -> Iterator[str]:
    daemon = told["daemon"]
    runs = f"runs since {daemon['since']}, process {daemon['pid']}" if daemon else "does not run"
    yield f"daemon   {runs}"
    yield f"target   {told['target'] or 'none: HEAD is on no branch'} ({told['mode']} mode)" + (
        f", busy: a work tree is {told['busy']}" if told["busy"] else ""
    )
    yield f"inbox    {told['inbox']} waiting"
    for held in told["held"]:
        yield visible(f"held     {held['id']}  {held['code']}: {held['why']}")
    for batch in told["waiting"]:
        note = f"  ({batch['note']})" if batch["note"] else ""
        codes = "".join(f"  [{code}]" for code in dict.fromkeys(batch["warnings"]))
        paths = ", ".join(batch["paths"][:3])
        yield visible(f"{batch['state']:<8} {batch['branch']}  {paths}{codes}{note}")
