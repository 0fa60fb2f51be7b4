"""`patchq status`: whether a daemon runs, what waits, what is held and why."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict

from patchq.cli import arguments, batches, listing, output, places, screen
from patchq.cli.listing import Filter
from patchq.cli.screen import Line, Styled
from patchq.core.text.quote import visible
from patchq.gate.errors import CRASHED, CannotSign, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.history import Sighting
from patchq.gate.pipeline.lines import in_words
from patchq.gate.pipeline.rules import difference
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.hand import activities, stem_id, told
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.document import plain
from patchq.gate.report.schema import (
    PENDING_CONFLICT,
    WAITING,
    Report,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import comparison, from_git
from patchq.gate.review.risk import Risk
from patchq.gate.service.doctor import Finding, beside

Needs = Mapping[str, Mapping[str, str | None]]
"""The batches that are held for others: id -> each that has not landed, with its state."""


_WITH_CURE = (ObjectDamaged.code, CRASHED, CannotSign.code, "worktree.unseen")
EVERY = Filter()
_MOST_DOING = 10
MOST = 50
"""Batches of a kind that programs are told of if nobody says how many; people get a screen."""
_SCREEN = 20
"""Lines on batches in a pipe, which has no height."""
ARGUMENTS = (
    arguments.Argument("id", metavar="ID", nargs="?", help="one batch only"),
    arguments.Argument(
        "-n", "--limit", metavar="N", type=arguments.positive,
        help=f"at most N that are held, and N that wait for review (a screen; {MOST} in JSON)",
    ),
    arguments.Argument("--state", choices=sorted(WAITING), help="only those in this state"),
    arguments.Argument(
        "--ahead", action="store_true", help="what is being written and overlaps that, or others"
    ),
    *listing.FILTERS,
)  # fmt: skip


def run(args: Namespace) -> int:
    context = places.open_context(args, looks=True)
    if args.id is not None and (pending := batches.pending(context, args.id)):
        return output.emit(args, pending.to_json(), output.pending(pending))
    if args.id is not None:
        report, note = batches.seen(context, *batches.find(context, args.id))
        line = output.line(report) + (f"  ({note})" if note else "")
        return output.emit(args, {**plain(report), "note": note}, line, *listing.heading(report))
    if args.ahead:
        from patchq.gate.review.ahead import ahead  # only who asks compares work trees

        found = ahead(context)
        if args.json:
            return output.emit(args, {"ahead": found})
        screen.show(_ahead_lines(found), context.repo)
        return 0
    wanted = Filter.of(args)
    if args.json:
        answer = overview(context, args.limit or MOST, args.state, wanted)
        return output.emit(args, answer)
    room = screen.height() if screen.is_terminal() else _SCREEN
    answer = overview(context, args.limit or room, args.state, wanted)
    screen.show(
        _lines(answer, None if args.limit else room, args.by == "risk"), context.repo, crop=True
    )
    return 0


def overview(
    context: RepoContext,
    limit: int | None = None,
    state: str | None = None,
    wanted: Filter = EVERY,
) -> dict[str, Any]:
    """How the queue stands, as `status --json` has it: of what is held and of what waits for
    review those of this state that are wanted, at most `limit` of each, and how many there are."""
    owner = lock_owner(context.queue_root)
    doing = context.branches.busy(context.target) if context.target else None
    needs = depends.held(context)
    held = [claim.id for claim in context.queue.held() if claim.id]
    if wanted.reads_all:
        reports = [it for id in held if (it := context.queue.load(id)) and wanted.fits(it)]
        held = [it.id for it in wanted.ordered(context, reports)]
    held = held if state in (None, "held") else []
    proposals = _Proposals(context, wanted)
    waiting, others = proposals.some(limit, state) if state != "held" else ([], 0)
    counts = Counter({"held": len(held)} if held else {})
    counts.update(seen.state for _, seen in waiting)
    counts.update({"proposed": others} if others else {})
    return {
        "target": context.target or None,
        "remote": context.branches.remote,
        "mode": context.config.mode,
        "rules": plain(context.judged_by.origin()),
        "daemon": {"pid": owner.pid, "since": owner.since and _time(owner.since)}
        if owner
        else None,
        "inbox": context.queue.depth(),
        "in_hand": _in_hand(context),
        "busy": doing,
        "troubles": [
            {"what": found.what, "why": found.message, "cure": found.cure}
            for found in (
                *_rules(context),
                *beside.replaced_inbox(context.queue_root),
                *beside.ended(context.queue_root),
                *beside.short(context.repo.commondir, context.queue_root),
                *(beside.work_trees(context.repo) if context.branches.remote is None else ()),
                *beside.noted(context.queue_root, context.config),
            )
        ],
        "counts": dict(counts),
        "left_out": {"held": len(held[limit:]) if limit else 0, "waiting": others},
        "branches": _branches(context),
        "held": [_held(id, needs, context) for id in held[:limit]],
        "waiting": _all_waiting(waiting, proposals, needs, context),
    }


def _rules(context: RepoContext) -> Iterator[Finding]:
    """Trouble with the rules, and a work tree's file that says something else."""
    rules = context.judged_by
    if fault := rules.trouble:
        cure = f"{fault.hint}; a daemon keeps the rules that it has" if fault.hint else ""
        yield Finding("rules", "fatal", "; ".join(fault.message.splitlines()), cure)
    elif other := difference(context.repo, rules):
        yield Finding("rules", "weaker", *other)


class _Proposals:
    """What waits for review, of all batches or of those that are wanted; read as far as it is
    shown."""

    def __init__(self, context: RepoContext, wanted: Filter) -> None:
        self._ground = context
        self._marks = history.ids(context.repo, records.WAITING)
        self._wanted = wanted

    def some(
        self, limit: int | None, state: str | None
    ) -> tuple[list[tuple[Report, Sighting]], int]:
        """At most `limit` of them as they stand now, in their order, or in that of their ids, those
        that git alone knows last; and how many there are beside."""
        ids = sorted(self._marks)
        known, count = self._reports(ids), len(ids)
        if self._wanted.reads_all:
            everyone = list(known)
            alone = {report.id: git_alone for report, git_alone in everyone}
            reports = self._wanted.ordered(self._ground, [report for report, _ in everyone])
            known, count = ((report, alone[report.id]) for report in reports), len(reports)
        found: list[tuple[Report, Sighting]] = []
        other = 0
        for report, git_alone in known:
            seen = Sighting("proposed", from_git.SAYS_SO)
            if not git_alone:
                seen = history.observe(self._ground, report)
            if state in (None, seen.state):
                found.append((batches.as_it_stands(self._ground, report, seen), seen))
            else:
                other += 1
            if len(found) == limit:
                return found, count - len(found) - other
        return found, 0

    def _reports(self, ids: Sequence[str]) -> Iterator[tuple[Report, bool]]:
        """The reports that are wanted, and whether git alone tells of them."""
        context, lost = self._ground, set[str]()
        for id in ids:
            report = context.queue.load(id)
            if report is None or not has_commit(report):
                lost.add(id)
            elif self._wanted.fits(report):
                yield report, False
        for report in from_git.waiting(context, self._marks - lost) if lost else ():
            if self._wanted.fits(report):
                yield report, True

    def __contains__(self, id: str | None) -> bool:
        """Whether a batch waits, as the repository shows it now."""
        if id not in self._marks:
            return False
        report = self._ground.queue.load(id)
        return report is None or history.observe(self._ground, report).state == "proposed"


def _branches(context: RepoContext) -> list[dict[str, str | None]]:
    """The branches that are taken when they move."""
    if not context.config.branches:
        return []
    from patchq.gate.review import branches  # only who has any looks at them

    return list(branches.standing(context))


def _in_hand(context: RepoContext) -> dict[str, Any]:
    """How many responses were taken and have no verdict, and what is done with them."""
    pending = store_queue(context.queue).in_hand()
    known = {name for one in pending for name in (one.id, stem_id(one.name))}
    doing = [one for one in activities(context.queue_root) if one.hook or one.batch in known]
    doing = doing[:_MOST_DOING] if pending else []
    return {
        "count": len(pending),
        "doing": [asdict(one) for one in doing],
        "text": told(doing, batches=True),
    }


def _held(id: str, needs: Needs, context: RepoContext) -> dict[str, Any]:
    report = context.queue.load(id)
    why = report.problems[-1] if report and report.problems else None
    return {
        "id": id,
        "code": why and why.code,
        "why": why.message if why else "not looked at yet",
        "hint": why and why.hint,
        "waits_for": [{"id": other, "state": state} for other, state in needs.get(id, {}).items()],
        "waited_for_by": _waited_for_by(id, needs),
        "agent": report and report.agent,
        "paths": listing.paths(report) if report else [],
        **(listing.facts(report) if report else {}),
    }


def _all_waiting(
    waiting: Sequence[tuple[Report, Sighting]],
    there: _Proposals,
    needs: Needs,
    context: RepoContext,
) -> list[dict[str, Any]]:
    """What waits, those of a stack together; what waits for its agent comes last."""
    sightings = {report.id: seen for report, seen in waiting}
    carries: dict[str, list[str]] = {}
    for report, _ in waiting:
        if on := _on(report):
            carries.setdefault(on, []).append(report.id)
    found = []
    for report in depends.in_order(report for report, _ in waiting):
        id, risk = report.id, comparison.risk_of(context, report)
        found.append(_waiting(report, sightings[id], there, needs, risk, carries.get(id, [])))
    return sorted(found, key=lambda one: one["waits_for"] == "agent")


def _on(report: Report) -> str | None:
    return report.stands_on.batch if report.stands_on else None


def _waiting(
    report: Report,
    seen: Sighting,
    there: _Proposals,
    needs: Needs,
    risk: Risk,
    carries: Sequence[str],
) -> dict[str, Any]:
    return {
        "id": report.id,
        "state": seen.state,
        "note": seen.note,
        "branch": report.branch,
        "target": report.target,
        "agent": report.agent,
        "paths": listing.paths(report),
        **listing.facts(report),
        "warnings": [p.code for p in report.problems],
        "waits_for": "agent" if waits_for_its_agent(report) else "person",
        "risk": risk.to_json(),
        "needs_retry": next((p.message for p in report.problems if p.code == "target.moved"), None),
        "collides": [
            {"edit": p.edit, **plain(other)}
            for p in report.problems
            if p.code == PENDING_CONFLICT and (other := p.conflicts_with) and other.batch in there
        ],
        "stands_on": plain(report.stands_on) if _on(report) in there else None,
        "carries": carries,
        "waited_for_by": _waited_for_by(report.id, needs),
    }


def _waited_for_by(id: str, needs: Needs) -> list[str]:
    return [other for other, named in needs.items() if id in named]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _lines(answer: Mapping[str, Any], room: int | None, by_risk: bool) -> Iterator[Line]:
    """For people; of the batches what `room` lines hold, if that is bounded."""
    daemon = answer["daemon"]
    runs = f"runs since {daemon['since']}, process {daemon['pid']}" if daemon else "does not run"
    place = f" on {answer['remote']}" if answer["remote"] else ""
    target = f"{answer['target'] or 'none'}{place} ({answer['mode']} mode)"
    busy = f", busy: a work tree is {answer['busy']}" if answer["busy"] else ""
    head: list[Line] = [
        screen.plain(f"daemon   {runs}"),
        screen.plain(f"target   {target}{busy}"),
        screen.plain(f"inbox    {answer['inbox']} waiting"),
        *_hand_lines(answer["in_hand"]),
    ]
    if answer["counts"]:
        counts = ", ".join(f"{count} {state}" for state, count in answer["counts"].items())
        head.append(screen.plain(f"batches  {counts}", "bold"))
    for trouble in answer["troubles"]:
        text = visible(f"trouble  {trouble['what']}: {trouble['why']}")
        cure = [trouble["cure"]] if trouble["cure"] else []
        head += [screen.plain(text, "red"), *_edge("cure:", cure)]
    head += _branch_lines(answer["branches"])
    yield from head
    blocks = [*map(_held_lines, answer["held"]), *_waiting_lines(answer["waiting"], by_risk)]
    shown = len(blocks)
    if room is not None:
        left = max(room - len(head) - 2, 3)
        for shown, block in enumerate(blocks):  # noqa: B007
            left -= len(block)
            if left < 0:
                break
        else:
            shown = len(blocks)
    for block in blocks[: max(shown, 1)]:
        yield from block
    yield from _left_out(answer, max(shown, 1))


def _hand_lines(hand: Mapping[str, Any]) -> Iterator[Line]:
    if hand["count"]:
        doing = f": {hand['text']}" if hand["text"] else ""
        yield screen.plain(visible(f"in hand  {hand['count']}{doing}"))


def _left_out(answer: Mapping[str, Any], shown: int) -> Iterator[Line]:
    held, waiting = len(answer["held"]), len(answer["waiting"])
    not_held = answer["left_out"]["held"] + max(0, held - shown)
    not_waiting = answer["left_out"]["waiting"] + min(waiting, max(0, held + waiting - shown))
    if not_held or not_waiting:
        left = answer["left_out"]
        most = max(held + left["held"], waiting + left["waiting"])
        yield screen.plain(
            f"not shown: {not_held} held, {not_waiting} waiting for review; see "
            f"`patchq status --limit {most}`, or `--state`, `--agent`, `--path`, `--since`",
            "bold",
        )


def _held_lines(held: Mapping[str, Any]) -> list[Line]:
    line: Line = (
        Styled("held     ", listing.STYLES["held"]),
        listing.cell(f"{held['id']}  {held['code']}: {held['why']}"),
        Styled(f"  {listing.age(held.get('received'))}", "cyan"),
        listing.cell(f"  {said}" if (said := listing.said_by({"message": None, **held})) else ""),
    )
    cure = held["hint"] if held["code"] in _WITH_CURE else None
    others = [other["id"] for other in held["waits_for"]]
    return [
        line,
        *_edge("cure:", [cure] if cure else []),
        *_edge("waits for", others if len(others) > 1 else []),
        *_edge("waited for by", held["waited_for_by"]),
    ]


def _waiting_lines(batches: Sequence[Mapping[str, Any]], by_risk: bool) -> Iterator[list[Line]]:
    for line, batch in zip(
        listing.columns([_row(batch) for batch in batches]), batches, strict=True
    ):
        retry = batch["needs_retry"]
        yield [
            line,
            *(_risk_lines(batch["risk"]) if by_risk else ()),
            *_edge("needs a retry:", [retry] if retry else []),
            *_edge("stands on", [batch["stands_on"]["batch"]] if batch["stands_on"] else []),
            *_edge("carries", batch["carries"]),
            *_edge("collides with", [_place(other) for other in batch["collides"]]),
            *_edge("waited for by", batch["waited_for_by"]),
        ]


def _row(batch: Mapping[str, Any]) -> list[Styled]:
    codes = " ".join(f"[{code}]" for code in dict.fromkeys(batch["warnings"]))
    return [
        Styled(f"{_state(batch):<8} {batch['branch']}", listing.STYLES.get(batch["state"], "")),
        Styled(listing.age(batch["received"], batch["decided"]), "cyan"),
        listing.cell(listing.size_of(batch["size"], batch["paths"])),
        Styled(codes, "yellow"),
        listing.cell(f"({batch['note']})" if batch["note"] else ""),
        listing.cell(listing.said_by(batch)),
        listing.cell(listing.checks_of(batch), "dim"),
    ]


def _risk_lines(risk: Mapping[str, Any]) -> Iterator[Line]:
    """The level, and what raises it."""
    texts = [one["text"] for one in risk["reasons"] if one["level"] != "low"]
    yield from _edge(f"{risk['level']} risk{':' * bool(texts)}", ["; ".join(texts)])


def _state(batch: Mapping[str, Any]) -> str:
    """What one that waits is called; one that was sent back waits for its agent."""
    asked = batch["state"] == "proposed" and batch["waits_for"] == "agent"
    return "sent back" if asked else batch["state"]


def _branch_lines(branches: Sequence[Mapping[str, str | None]]) -> Iterator[Line]:
    """Those that wait or were turned away, and in one line how many there are beside."""
    told = [branch for branch in branches if branch["state"] != "taken"]
    for branch in told[:MOST]:
        yield screen.plain(
            visible(f"branch   {branch['branch']}  {branch['state']}: {branch['why']}")
        )
        until = "until" if branch["state"] == "waits" else "cure:"
        yield from _edge(until, [branch["cure"]] if branch["cure"] else [])
    if branches:
        left = f", {len(told) - MOST} not shown" if len(told) > MOST else ""
        yield screen.plain(f"branches {len(branches) - len(told)} taken, {len(told)} not{left}")


def _ahead_lines(found: Mapping[str, Any]) -> Iterator[Line]:
    for work in found["works"]:
        where = " ".join(filter(None, (work["worktree"], work["branch"] and f"({work['branch']})")))
        left = f", {work['files_left_out']} of them not compared" if work["files_left_out"] else ""
        clear = "" if work["overlaps"] else ", nothing overlaps"
        yield screen.plain(
            visible(f"ahead    {where}  {_count(work['files'], 'file')}{left}{clear}")
        )
        for one in work["overlaps"]:
            other = one["with"]
            by = f" of {other['agent']}" if other["agent"] else ""
            who = f"{_KINDS[other['kind']]} {other['name']}{by}"
            yield from _edge(f"{_changed(one)}:", [f"{who} {_changed(other)}"])
        yield from _edge("and more", ["`--json` tells as much"] if work["more"] else [])
    if found["left_out"]:
        yield screen.plain(f"not compared: {found['left_out']} more work trees and branches")
    if not found["works"]:
        yield screen.plain(
            f"nothing is being written that {found['target'] or 'the target'} has not"
        )


_KINDS = {"waits": "proposal", "held": "held batch", "worktree": "work tree", "branch": "branch"}


def _changed(change: Mapping[str, Any]) -> str:
    lines = change["lines"]
    where = f"{in_words((lines[0], lines[1]))} of " if lines else ""
    return f"{change['does']} {where}{change['path']}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _edge(what: str, others: Sequence[str]) -> Iterator[Line]:
    """A line below a batch that says how it stands to others."""
    if others:
        yield screen.plain(visible(f"           {what} {', '.join(others)}"), "dim")


def _place(other: Mapping[str, Any]) -> str:
    lines = "-".join(map(str, dict.fromkeys(other["lines"] or ())))
    by = f" of {other['agent']}" if other["agent"] else ""
    return f"{other['batch']}{by} ({other['path']}{':' if lines else ''}{lines})"
