"""The inbox: what waits for a person, by its risk, and for its agent; what is held and why."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.cli import listing
from patchq.gate.api import Gate
from patchq.gate.api.rows import Filter
from patchq.page.decisions import FormResult
from patchq.page.shown import Shown

MOST = 500
"""Proposals that one page shows."""
FILTERS = ("agent", "path", "level")


def view(gate: Gate, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """Return the state of the queue, as `patchq status` has it.

    `asked` has the filters, `result` the reasons why some were not sent back.
    """
    wanted = {name: asked.get(name) or None for name in FILTERS}
    status = gate.status(Filter(agent=wanted["agent"], path=wanted["path"]), MOST)
    waiting = [row for row in status.rows if row.block != "held"]
    shown = [row for row in waiting if wanted["level"] in (None, row.risk and row.risk.level)]
    values = {
        "status": status,
        "age": listing.age,
        "size": listing.size_of,
        "checks": listing.checks_of,
        "waiting": [row for row in shown if row.waits_for != "agent"],
        "sent_back": [row for row in shown if row.waits_for == "agent"],
        "held": status.block("held"),
        "hidden": len(waiting) - len(shown),
        "asked": {name: wanted[name] or "" for name in FILTERS},
        "agents": sorted(status.agents),
        "problems": result.problems if result else (),
        "written": result.written if result else "",
        "left_out": status.left_out["waiting"],
    }
    return Shown("inbox.html", "Inbox", values)
