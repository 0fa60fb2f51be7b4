"""The inbox: what waits for a person, by its risk, and for its agent; what is held and why."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.cli import listing, status
from patchq.cli.listing import Filter
from patchq.gate.git import records
from patchq.gate.pipeline.session import Session
from patchq.page.decisions import FormResult
from patchq.page.shown import Shown

MOST = 500
"""Proposals that one page shows."""
FILTERS = ("agent", "path", "level")


def view(session: Session, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """How the queue stands, as `patchq status` has it; `asked` are the filters, `result` is why
    some were not sent back."""
    wanted = {name: asked.get(name) or None for name in FILTERS}
    overview = status.overview(
        session, MOST, wanted=Filter(wanted["agent"], wanted["path"], by="risk")
    )
    everyone = [
        {
            **one,
            "age": listing.age(one["received"]),
            "commit": session.branches.tip(records.branch(one["id"])) or "",
        }
        for one in overview["waiting"]
    ]
    shown = [one for one in everyone if wanted["level"] in (None, one["risk"]["level"])]
    values = {
        "overview": overview,
        "waiting": [one for one in shown if one["waits_for"] == "person"],
        "sent_back": [one for one in shown if one["waits_for"] == "agent"],
        "hidden": len(everyone) - len(shown),
        "asked": {name: wanted[name] or "" for name in FILTERS},
        "agents": sorted({one["agent"] for one in everyone if one["agent"]}),
        "problems": result.problems if result else (),
        "written": result.written if result else "",
        "left_out": overview["left_out"]["waiting"],
    }
    return Shown("inbox.html", "Inbox", values)
