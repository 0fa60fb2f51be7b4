"""The state of a queue: its daemon, its inbox, its troubles, and the changes that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import time_ns
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from patchq.gate.api.rows import Block, ChangeRow, Filter, seen, with_risk, with_sizes
from patchq.gate.git import records
from patchq.gate.land.running import RunningTrain, running
from patchq.gate.pipeline import depends, history
from patchq.gate.pipeline.context import RepoContext, difference
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.events import Events
from patchq.gate.queue.inbox import stem_id
from patchq.gate.queue.lock import activities, activity_text, lock_owner
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, Report, SourceEntry, has_commit
from patchq.gate.review import from_git, pull_requests
from patchq.gate.service.check import Finding, troubles

BLOCKS: tuple[Block, ...] = ("for_you", "accepted", "for_agents", "held", "with_git")
_MOST_DOING = 10
_MOST_EVENTS = 2000
_DAY = 86400 * 10**9  # in nanoseconds, as the ids of events


class Status(Struct, frozen=True, kw_only=True):
    """The state of a queue; `counts` has all changes of each block, `rows` some of each."""

    target: str | None
    remote: str | None
    mode: str
    rules: Mapping[str, Any]
    daemon: Mapping[str, Any] | None
    inbox: int
    in_hand: Mapping[str, Any]
    trains: Sequence[RunningTrain]
    busy: str | None
    troubles: list[dict[str, str | None]]
    counts: Mapping[str, int]
    branches: list[dict[str, str | None]]
    refused: list[str]
    """The responses refused in the last 24 hours, the newest last."""
    rows: list[ChangeRow]

    def block(self, name: str) -> list[ChangeRow]:
        """Return the rows of a block, in their order."""
        return [row for row in self.rows if row.block == name]

    @property
    def left_out(self) -> dict[str, int]:
        """The number of changes without a row here."""
        held, all_held = len(self.block("held")), self.counts["held"]
        waiting = sum(self.counts.values()) - all_held - (len(self.rows) - held)
        return {"held": all_held - held, "waiting": waiting}

    def to_json(self) -> dict[str, Any]:
        kept = asdict(self)
        rows = kept.pop("rows")
        return {
            **kept,
            "refused": len(self.refused),
            "trains": [asdict(train) for train in self.trains],
            "left_out": self.left_out,
            "held": [row.to_json() for row in rows if row.block == "held"],
            "waiting": [row.to_json() for row in rows if row.block != "held"],
        }


def look(context: RepoContext, where: Filter, limit: int | None) -> Status:
    """Return the state of the queue.

    Each block has at most `limit` of the changes that match the filter.
    """
    owner = lock_owner(context.queue_root)
    since = datetime.fromtimestamp(owner.since, UTC) if owner and owner.since else None
    wanted = [row for row in _rows(context) if where.takes(row)]
    counts = Counter(row.block for row in wanted)
    ordered = where.ordered((with_risk(context, row) for row in wanted), "risk")
    by_id = {row.id: row for row in ordered}
    rows = [by_id[report.id] for report in depends.in_order(row.report for row in ordered)]
    blocks = [[row for row in rows if row.block == block] for block in BLOCKS]
    return Status(
        target=context.target or None,
        remote=context.branches.remote,
        mode=context.config.mode,
        rules=document.plain(context.judged_by.origin()),
        daemon={"pid": owner.pid, "since": since and since.isoformat(timespec="seconds")}
        if owner
        else None,
        inbox=store_queue(context.queue).inbox.depth(),
        in_hand=_in_hand(context),
        trains=running(context.queue_root),
        busy=context.branches.busy(context.target) if context.target else None,
        troubles=[
            {"what": found.what, "why": found.message, "cure": found.cure}
            for found in _troubles(context)
        ],
        counts={block: counts[block] for block in BLOCKS},
        branches=_branches(context),
        refused=_refused(context),
        rows=[with_sizes(context, row) for block in blocks for row in block[:limit]],
    )


def _rows(context: RepoContext) -> Iterator[ChangeRow]:
    needs = depends.held(context)
    waiting = list(_proposals(context))
    proposed = {report.id for report, _ in waiting if report.state == "proposed"}
    carries: dict[str, list[str]] = {}
    for report, _ in waiting:
        if report.stands_on:
            carries.setdefault(report.stands_on.batch, []).append(report.id)
    held = [claim.id for claim in context.queue.held() if claim.id]
    shown = pull_requests.shown(context)
    # One that has not been looked at yet has no report.
    unseen, mode = SourceEntry(name="", sha256="", bytes=0), context.config.mode
    known = [
        (context.queue.load(id) or Report(id=id, state="held", source=unseen, mode=mode), "")
        for id in held
    ]
    for report, note in [*known, *waiting]:
        on = report.stands_on
        yield ChangeRow(
            report=report,
            note=note,
            collides=tuple(
                one
                for one in report.problems
                if one.code == PENDING_CONFLICT
                and one.conflicts_with
                and one.conflicts_with.batch in proposed
            ),
            stands_on=on if on and on.batch in proposed else None,
            carries=tuple(carries.get(report.id, ())),
            needs=needs.get(report.id, {}),
            waited_for_by=tuple(other for other, named in needs.items() if report.id in named),
            request=shown.get(report.id),
        )


def _proposals(context: RepoContext) -> Iterator[tuple[Report, str]]:
    """Yield what waits for review as git shows it now, by ids; what git alone knows comes last."""
    marks, lost = history.ids(context.repo, records.WAITING), set[str]()
    for id in sorted(marks):
        report = context.queue.load(id)
        if report is None or not has_commit(report):
            lost.add(id)
        else:
            yield seen(context, report)
    yield from from_git.reports(context, lost).values()


def _troubles(context: RepoContext) -> Iterator[Finding]:
    """Yield the findings on the rules and on the queue."""
    rules = context.judged_by
    if fault := rules.fault:
        cure = f"{fault.hint}; a daemon keeps the rules that it has" if fault.hint else ""
        yield Finding("rules", "fatal", "; ".join(fault.message.splitlines()), cure)
    elif other := difference(context.repo, rules):
        yield Finding("rules", "weaker", *other)
    yield from troubles(context)


def _branches(context: RepoContext) -> list[dict[str, str | None]]:
    if not context.config.branches:
        return []
    from patchq.gate.intake import branches  # only who has any looks at them

    return list(branches.standing(context))


def _in_hand(context: RepoContext) -> dict[str, Any]:
    pending = store_queue(context.queue).in_hand()
    known = {name for one in pending for name in (one.id, stem_id(one.name))}
    doing = [one for one in activities(context.queue_root) if one.hook or one.batch in known]
    doing = doing[:_MOST_DOING] if pending else []
    return {
        "count": len(pending),
        "doing": [asdict(one) for one in doing],
        "text": activity_text(doing, batches=True),
    }


def _refused(context: RepoContext) -> list[str]:
    since = format(time_ns() - _DAY, "016x")
    events = Events(context.queue_root, since).read(_MOST_EVENTS)
    return [event["batch"] for event in events if event["kind"] == "refused"]
