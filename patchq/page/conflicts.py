"""The proposals that collide with each other."""

from __future__ import annotations

from collections.abc import Mapping

from patchq.gate.api import Gate
from patchq.page import plots
from patchq.page.inbox import MOST
from patchq.page.shown import Shown

_MOST_DOTS = 40
"""Beyond so many the picture is a blot; the table below it has all."""


def view(gate: Gate, asked: Mapping[str, str], result: object = None) -> Shown:
    """Return the collisions between proposals, as a picture and in words."""
    rows = [row for row in gate.status(limit=MOST).rows if row.block != "held"]
    found = [
        (row.id, one.edit, other)
        for row in rows
        for one in row.collides
        if (other := one.conflicts_with)
    ]
    names = sorted({name for id, _, other in found for name in (id, other.batch or "")})
    at = {name: number for number, name in enumerate(names)}
    pairs = sorted({tuple(sorted((at[id], at[other.batch or ""]))) for id, _, other in found})
    drawn = [(one, other) for one, other in pairs if max(one, other) < _MOST_DOTS]
    values = {
        "picture": plots.ring(names[:_MOST_DOTS], drawn, "Proposals that collide") if names else "",
        "pairs": [{"id": id, "edit": edit, "other": other} for id, edit, other in found],
        "waiting": len(rows),
        "left_out": max(0, len(names) - _MOST_DOTS),
    }
    return Shown("conflicts.html", "Conflicts", values)
