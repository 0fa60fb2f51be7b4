"""The inbox: what waits for a person, by its risk, and for its agent; what is held and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.cli import listing, status
from patchq.cli.listing import Filter
from patchq.cli.page.shown import Shown
from patchq.model.report import waits_for_its_agent
from patchq.pipeline.world import World
from patchq.review.risk import Risk, risk

MOST = 500
"""Proposals that one page shows."""
FILTERS = ("agent", "path", "level")
_NOTHING = Risk("low", ())


def view(world: World, asked: Mapping[str, str]) -> Shown:
    """How the queue stands, as `patchq status` has it; `asked` are the filters."""
    wanted = {name: asked.get(name) or None for name in FILTERS}
    overview = status.overview(world, MOST, wanted=Filter(wanted["agent"], wanted["path"]))
    everyone = [_proposal(world, one) for one in overview["waiting"]]
    shown = [one for one in everyone if wanted["level"] in (None, one["risk"].level)]
    shown.sort(key=lambda one: one["risk"].order, reverse=True)
    left = [one for one in shown if one["answers"]]
    values = {
        "overview": overview,
        "waiting": [one for one in shown if not one["answers"]],
        "sent_back": left,
        "hidden": len(everyone) - len(shown),
        "asked": {name: wanted[name] or "" for name in FILTERS},
        "agents": sorted({one["agent"] for one in everyone if one["agent"]}),
        "left_out": overview["left_out"]["waiting"],
    }
    return Shown("inbox.html", "Inbox", values)


def _proposal(world: World, one: Mapping[str, Any]) -> dict[str, Any]:
    """With its risk, and whether its agent has to answer."""
    report = world.queue.load(one["id"])
    return {
        **one,
        "age": listing.age(one["received"]),
        "risk": risk(report) if report else _NOTHING,
        "answers": report is not None and waits_for_its_agent(report),
    }
