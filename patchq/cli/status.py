"""`patchq status`: whether a daemon runs, what waits, what is held and why."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from patchq.cli import arguments, batches, output, places
from patchq.git import records
from patchq.git.checkout import busy
from patchq.model.errors import CRASHED, CannotSign, ObjectDamaged
from patchq.model.report import PENDING_CONFLICT, WAITING, CollisionEntry, Report, has_commit
from patchq.pipeline import dependencies, traces
from patchq.pipeline.ground import Ground
from patchq.pipeline.rebase.lines import in_words
from patchq.pipeline.traces import Sighting
from patchq.queue.lock import lock_owner
from patchq.review import from_git
from patchq.service.doctor import beside
from patchq.text.quote import visible

Needs = Mapping[str, Mapping[str, str | None]]
"""The batches that are held for others: id -> each that has not landed, with its state."""


_WITH_CURE = (ObjectDamaged.code, CRASHED, CannotSign.code, "worktree.unseen")
MOST = 50
"""Batches of a kind that are shown if nobody says how many."""
ARGUMENTS = (
    arguments.Argument("id", metavar="ID", nargs="?", help="one batch only"),
    arguments.Argument(
        "-n", "--limit", metavar="N", type=arguments.positive, default=MOST,
        help="at most N that are held, and N that wait for review (%(default)s)",
    ),
    arguments.Argument("--state", choices=sorted(WAITING), help="only those in this state"),
    arguments.Argument("--agent", metavar="NAME", help="only those of this agent"),
    arguments.Argument(
        "--ahead", action="store_true", help="what is being written and overlaps that, or others"
    ),
)  # fmt: skip


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    if args.id is not None and (pending := batches.pending(ground, args.id)):
        return output.emit(args, pending.to_json(), output.pending(pending))
    if args.id is not None:
        report, note = batches.seen(ground, *batches.find(ground, args.id))
        line = output.line(report) + (f"  ({note})" if note else "")
        return output.emit(args, {**report, "note": note}, line)
    if args.ahead:
        from patchq.review.ahead import ahead  # only who asks compares work trees

        found = ahead(ground)
        return output.emit(args, {"ahead": found}, *_ahead_lines(found))
    answer = overview(ground, args.limit, args.state, args.agent)
    return output.emit(args, answer, *_lines(answer))


def overview(
    ground: Ground, limit: int | None = None, state: str | None = None, agent: str | None = None
) -> dict[str, Any]:
    """How the queue stands, as `status --json` has it: of what is held and of what waits for
    review those of this state and agent, at most `limit` of each, and how many there are."""
    owner = lock_owner(ground.queue_root)
    doing = busy(ground.repo, ground.target) if ground.target else None
    needs = dependencies.held(ground)
    held = [claim.id for claim in ground.queue.held() if claim.id]
    if agent is not None:
        held = [id for id in held if (it := ground.queue.load(id)) and it["agent"] == agent]
    held = held if state in (None, "held") else []
    proposals = _Proposals(ground, agent)
    waiting, others = proposals.some(limit, state) if state != "held" else ([], 0)
    counts = Counter({"held": len(held)} if held else {})
    counts.update(seen.state for _, seen in waiting)
    counts.update({"proposed": others} if others else {})
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
        "counts": dict(counts),
        "left_out": {"held": len(held[limit:]) if limit else 0, "waiting": others},
        "branches": _branches(ground),
        "held": [_held(id, needs, ground) for id in held[:limit]],
        "waiting": [_waiting(report, seen, proposals, needs) for report, seen in waiting],
    }


class _Proposals:
    """What waits for review, of all agents or of one; read as far as it is shown."""

    def __init__(self, ground: Ground, agent: str | None) -> None:
        self._ground = ground
        self._marks = traces.ids(ground.repo, records.WAITING)
        self._agent = agent

    def some(
        self, limit: int | None, state: str | None
    ) -> tuple[list[tuple[Report, Sighting]], int]:
        """At most `limit` of them as they stand now, in the order of their ids, those that git
        alone knows last; and how many there are beside."""
        ids = sorted(self._marks)
        known = self._reports(ids)
        if self._agent is not None:  # only the reports tell whose they are
            known = iter(list(known))
        found: list[tuple[Report, Sighting]] = []
        other = 0
        for report, git_alone in known:
            seen = Sighting("proposed", from_git.SAYS_SO)
            if not git_alone:
                seen = traces.observe(self._ground, report)
            if state in (None, seen.state):
                found.append((report, seen))
            else:
                other += 1
            if len(found) == limit:
                break
        else:
            return found, 0
        if self._agent is not None:
            return found, sum(1 for _ in known)
        return found, len(ids) - len(found) - other

    def _reports(self, ids: Sequence[str]) -> Iterator[tuple[Report, bool]]:
        """The reports of this agent's, and whether git alone tells of them."""
        ground, lost = self._ground, set[str]()
        for id in ids:
            report = ground.queue.load(id)
            if report is None or not has_commit(report):
                lost.add(id)
            elif self._agent in (None, report["agent"]):
                yield report, False
        for report in from_git.waiting(ground, self._marks - lost) if lost else ():
            if self._agent in (None, report["agent"]):
                yield report, True

    def __contains__(self, id: str | None) -> bool:
        """Whether a batch waits, as the repository shows it now."""
        if id not in self._marks:
            return False
        report = self._ground.queue.load(id)
        return report is None or traces.observe(self._ground, report).state == "proposed"


def _branches(ground: Ground) -> list[dict[str, str | None]]:
    """The branches that are taken when they move."""
    if not ground.config.branches:
        return []
    from patchq.review import branches  # only who has any looks at them

    return list(branches.standing(ground))


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


def _waiting(report: Report, seen: Sighting, there: _Proposals, needs: Needs) -> dict[str, Any]:
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
    if answer["counts"]:
        counts = ", ".join(f"{count} {state}" for state, count in answer["counts"].items())
        yield f"batches  {counts}"
    for trouble in answer["troubles"]:
        yield visible(f"trouble  {trouble['what']}: {trouble['why']}")
        yield from _edge("cure:", [trouble["cure"]])
    yield from _branch_lines(answer["branches"])
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
    left = answer["left_out"]
    if any(left.values()):
        yield (
            f"not shown: {left['held']} held, {left['waiting']} waiting for review; see "
            "`patchq status --limit N`, `--state`, `--agent`"
        )


def _branch_lines(branches: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    """Those that wait or were turned away, and in one line how many there are beside."""
    told = [branch for branch in branches if branch["state"] != "taken"]
    for branch in told[:MOST]:
        yield visible(f"branch   {branch['branch']}  {branch['state']}: {branch['why']}")
        until = "until" if branch["state"] == "waits" else "cure:"
        yield from _edge(until, [branch["cure"]] if branch["cure"] else [])
    if branches:
        left = f", {len(told) - MOST} not shown" if len(told) > MOST else ""
        yield f"branches {len(branches) - len(told)} taken, {len(told)} not{left}"


def _ahead_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for work in found["works"]:
        where = " ".join(filter(None, (work["worktree"], work["branch"] and f"({work['branch']})")))
        left = f", {work['files_left_out']} of them not compared" if work["files_left_out"] else ""
        clear = "" if work["overlaps"] else ", nothing overlaps"
        yield visible(f"ahead    {where}  {_count(work['files'], 'file')}{left}{clear}")
        for one in work["overlaps"]:
            other = one["with"]
            by = f" of {other['agent']}" if other["agent"] else ""
            who = f"{_KINDS[other['kind']]} {other['name']}{by}"
            yield from _edge(f"{_changed(one)}:", [f"{who} {_changed(other)}"])
        yield from _edge("and more", ["`--json` tells as much"] if work["more"] else [])
    if found["left_out"]:
        yield f"not compared: {found['left_out']} more work trees and branches"
    if not found["works"]:
        yield f"nothing is being written that {found['target'] or 'the target'} has not"


_KINDS = {"waits": "proposal", "held": "held batch", "worktree": "work tree", "branch": "branch"}


def _changed(change: Mapping[str, Any]) -> str:
    lines = change["lines"]
    where = f"{in_words((lines[0], lines[1]))} of " if lines else ""
    return f"{change['does']} {where}{change['path']}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _edge(what: str, others: Sequence[str]) -> Iterator[str]:
    """A line below a batch that says how it stands to others."""
    if others:
        yield visible(f"           {what} {', '.join(others)}")


def _place(other: CollisionEntry) -> str:
    lines = "-".join(map(str, dict.fromkeys(other["lines"] or ())))
    by = f" of {other['agent']}" if other["agent"] else ""
    return f"{other['batch']}{by} ({other['path']}{':' if lines else ''}{lines})"
