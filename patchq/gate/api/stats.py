"""Sums of what became of responses, by agent, model, format or day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from patchq.gate.queue.events import Event
from patchq.gate.service import stats
from patchq.gate.service.stats import Key

# The kinds of sums, and their keys in a row.
KINDS = {
    "verdict": "verdicts",
    "decision": "decisions",
    "match": "matches",
    "edit": "edits",
    "reason": "refusals",
    "flaky": "flaky",
}
DAY = "day"
BY = (*stats.PLACES, DAY)
# Counted for each format; the others are counted for whole responses.
_OF_EDITS = ("match", "edit")
_MOST_DAYS = 60


def table(counts: Mapping[Key, float], by: str | None) -> list[dict[str, Any]]:
    """Return one row per agent, model or format, the busiest first.

    If `by` is None, there is one row for all.
    """
    counted = [kind for kind in KINDS if by != "format" or kind in _OF_EDITS]
    rows = []
    for name, kinds in stats.sums(counts, by).items():
        if any(kind in kinds for kind in counted):
            sums = {kind: kinds.get(kind, {}) if kind in counted else {} for kind in KINDS}
            rows.append(
                {
                    "name": name or None,
                    "responses": sum(sums["verdict"].values()),
                    **{KINDS[kind]: dict(sorted(sums[kind].items())) for kind in KINDS},
                }
            )
    return sorted(rows, key=lambda row: (-row["responses"], -edits(row), row["name"] or ""))


def edits(row: Mapping[str, Any]) -> int:
    """Return the number of edits that a row counts."""
    return int(sum(row["edits"].values()))


def days(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the number of events of each kind per day (UTC).

    Only the last days that had any are listed.
    """
    found: dict[str, Counter[str]] = {}
    for event in events:
        found.setdefault(event["at"]["iso"][:10], Counter())[event["kind"]] += 1
    last = sorted(found.items())[-_MOST_DAYS:]
    return [{"day": day, "events": dict(sorted(kinds.items()))} for day, kinds in last]
