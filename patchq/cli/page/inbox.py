"""The inbox: what waits for a person, by its risk; what is held and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.cli import status
from patchq.cli.page.shown import Shown
from patchq.pipeline.world import World
from patchq.review.risk import Risk, risk

MOST = 500
"""Proposals that one page shows."""
NOTHING = Risk("low", ())
FILTERS = ("agent", "state", "path", "level")


def view(world: World, asked: Mapping[str, str]) -> Shown:
    """How the queue stands, as `patchq status` has it; `asked` are the filters."""
    wanted = {name: asked[name] for name in FILTERS if asked.get(name)}
    answer = status.overview(world, MOST)
    waiting = [{**one, "risk": _risk(world, one["id"])} for one in answer["waiting"]]
    waiting.sort(key=lambda one: one["risk"].order, reverse=True)
    values = {
        "overview": answer,
        "waiting": [one for one in waiting if _matches(one, wanted)],
        "all": len(waiting),
        "asked": {name: wanted.get(name, "") for name in FILTERS},
        "agents": sorted({one["agent"] for one in waiting if one["agent"]}),
        "left_out": answer["left_out"]["waiting"],
    }
    return Shown("inbox.html", "Inbox", values)


def _risk(world: World, id: str) -> Risk:
    report = world.queue.load(id)
    return risk(report) if report else NOTHING


def _matches(one: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    has = {
        "agent": [one["agent"]],
        "state": [one["state"]],
        "path": one["paths"],
        "level": [one["risk"].level],
    }
    return all(
        any(value in (part or "") if name == "path" else value == part for part in has[name])
        for name, value in wanted.items()
    )
