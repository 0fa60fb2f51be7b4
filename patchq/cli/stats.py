"""`patchq stats`: what became of responses, by agent, model or format; what happened, by day."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from patchq.cli import arguments, output, places
from patchq.core.text.quote import clip, visible
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.events import Events
from patchq.gate.service import stats
from patchq.gate.service.stats import Key

_KINDS = {
    "verdict": "verdicts",
    "decision": "decisions",
    "revert": "reverts",
    "match": "matches",
    "edit": "edits",
    "reason": "refusals",
    "correction": "corrections",
    "attempt": "attempts",
}
_OF_EDITS = ("match", "edit", "correction", "revert")
"""What is counted for each format; the rest is of whole responses."""


DAY = "day"
_MOST_DAYS = 60
ARGUMENTS = (
    arguments.Argument(
        "--by", choices=(*stats.PLACES, DAY), help="a row for each of these, in place of one"
    ),
)


def run(args: Namespace) -> int:
    context = places.open_context(args)
    if args.by == DAY:
        found = days(context.queue_root)
        return output.emit(args, {"by": DAY, "rows": found}, *_day_lines(found))
    rows = table(store_queue(context.queue).counts(), args.by)
    return output.emit(args, {"by": args.by, "rows": rows}, *_lines(rows, args.by))


def days(root: Path) -> list[dict[str, Any]]:
    """How often each kind of event happened on each of the last days that had any, in UTC, the
    oldest first, as far back as events are kept."""
    events = Events(root, "")
    try:
        found: dict[str, Counter[str]] = {}
        for event in events.read():
            found.setdefault(event["at"]["iso"][:10], Counter())[event["kind"]] += 1
    finally:
        events.close()
    last = sorted(found.items())[-_MOST_DAYS:]
    return [{"day": day, "events": dict(sorted(kinds.items()))} for day, kinds in last]


def _day_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield f"{row['day']}  " + ", ".join(f"{kind} {n}" for kind, n in row["events"].items())
    if not rows:
        yield "nothing happened here yet"


def table(counts: Mapping[Key, float], by: str | None) -> list[dict[str, Any]]:
    """A row for each agent, model or format, the busiest first; without `by`, one for all."""
    counted = [kind for kind in (*_KINDS, "truncated") if by != "format" or kind in _OF_EDITS]
    rows = []
    for name, kinds in stats.sums(counts, by).items():
        if any(kind in kinds for kind in counted):
            sums = {kind: kinds.get(kind, {}) if kind in counted else {} for kind in _KINDS}
            rows.append(
                {
                    "name": name or None,
                    "responses": sum(sums["verdict"].values()),
                    **{_KINDS[kind]: dict(sorted(sums[kind].items())) for kind in _KINDS},
                    "truncated": sum(kinds.get("truncated", {}).values()) if by != "format" else 0,
                }
            )
    return sorted(rows, key=lambda row: (-row["responses"], -_edits(row), row["name"] or ""))


def _edits(row: Mapping[str, Any]) -> int:
    return int(sum(row["edits"].values()))


def _lines(rows: list[dict[str, Any]], by: str | None) -> Iterator[str]:
    if not rows:
        yield "nothing was decided here yet"
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or '(not said)', 60))}: " if by else ""
        responses = f"{row['responses']} responses, " if by != "format" else ""
        yield f"{name}{responses}{_edits(row)} edits"
        for kind in _KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                yield f"  {kind:<12}" + ", ".join(f"{visible(value)} {n}" for value, n in sums)
        if row["truncated"]:
            yield f"  {'truncated':<12}{row['truncated']}"
