"""Outcomes of responses: by agent, model and format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.gate.api import Gate
from patchq.gate.api.stats import BY, DAY
from patchq.page import plots
from patchq.page.shown import Shown

_PLOTS = {
    "verdicts": "What became of responses",
    "decisions": "What people decided of proposals",
    "refusals": "Why responses were refused",
    "matches": "How quotes were found",
}
# The kinds of events that are plotted by day, the lowest first.
OVER_TIME = ("applied", "accepted", "proposed", "refused", "discarded", "reverted")
_MOST_ROWS = 50


def view(gate: Gate, asked: Mapping[str, str], result: object = None) -> Shown:
    """Return the sums that `patchq stats` prints, as tables and plots."""
    whole: Mapping[str, Any] = next(iter(gate.stats()), {})
    days = gate.stats(DAY)
    values = {
        "days": days,
        "kinds": OVER_TIME,
        "over_time": plots.columns(
            [(day["day"], [day["events"].get(kind, 0) for kind in OVER_TIME]) for day in days],
            "What happened, by day",
        ),
        "responses": whole.get("responses", 0),
        "plots": [
            {
                "what": what,
                "sums": whole.get(kind, {}),
                "plot": plots.bars(whole.get(kind, {}), what),
            }
            for kind, what in _PLOTS.items()
        ],
        "tables": {by: gate.stats(by)[:_MOST_ROWS] for by in BY if by != DAY},
    }
    return Shown("statistics.html", "Statistics", values)
