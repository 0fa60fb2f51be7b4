"""Who collides with whom."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.cli import status
from patchq.gate.pipeline.session import Session
from patchq.page import plots
from patchq.page.inbox import MOST
from patchq.page.shown import Shown

_MOST_DOTS = 40
"""Beyond so many the picture is a blot; the table below it has all."""


def view(session: Session, asked: Mapping[str, str]) -> Shown:
    """The collisions between what waits: as a picture, and in words."""
    waiting = status.overview(session, MOST)["waiting"]
    found = [(one["id"], other) for one in waiting for other in one["collides"]]
    names = sorted({name for id, other in found for name in (id, other["batch"])})
    at = {name: number for number, name in enumerate(names)}
    pairs = sorted({tuple(sorted((at[id], at[other["batch"]]))) for id, other in found})
    drawn = [(one, other) for one, other in pairs if max(one, other) < _MOST_DOTS]
    values = {
        "picture": plots.ring(names[:_MOST_DOTS], drawn, "Proposals that collide") if names else "",
        "pairs": [{"id": id, "other": other} for id, other in found],
        "waiting": len(waiting),
        "left_out": max(0, len(names) - _MOST_DOTS),
    }
    return Shown("conflicts.html", "Conflicts", values)
