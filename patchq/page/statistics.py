"""Outcomes of responses: by agent, model and format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.gate.api import Gate
from patchq.gate.api.stats import BY, DAY
from patchq.page.shown import Shown

_SUMS = {
    "verdicts": "What became of responses",
    "decisions": "What people decided of proposals",
    "refusals": "Why responses were refused",
    "matches": "How quotes were found",
}
# The kinds of events that are plotted by day, the first at the left.
_BY_DAY = ("applied", "accepted", "proposed", "refused", "discarded", "reverted")
_MOST_ROWS = 50


def view(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return the sums that `patchq stats` prints, as tables with bars."""
    whole: Mapping[str, Any] = next(iter(gate.stats()), {})
    days = {day["day"]: [day["events"].get(kind, 0) for kind in _BY_DAY] for day in gate.stats(DAY)}
    values = {
        "responses": whole.get("responses", 0),
        "sums": {what: whole.get(kind) or {} for kind, what in _SUMS.items()},
        "kinds": _BY_DAY,
        "days": days,
        "most": max(map(sum, days.values()), default=0),
        "tables": {by: gate.stats(by)[:_MOST_ROWS] for by in BY if by != DAY},
    }
    return Shown("statistics.html", "Statistics", values)
