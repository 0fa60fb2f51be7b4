"""The proposals that collide with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from patchq.gate.api import Gate
from patchq.page.inbox import MOST
from patchq.page.shown import Shown


def view(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return each pair of proposals that collide, those of the worst member first."""
    rows = [row for row in gate.status(limit=MOST).rows if row.block != "held"]
    places: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for one in row.collides:
            if (found := one.conflicts_with) and found.batch:
                lines = "-".join(dict.fromkeys(map(str, found.lines or ())))
                place = f"{found.path or ''}{f' lines {lines}' if lines else ''}"
                first, second = sorted((row.id, found.batch))
                places.setdefault((first, second), {})[place] = None
    many = Counter(id for pair in places for id in pair)
    worst_first = {pair: sorted(pair, key=lambda id: (-many[id], id)) for pair in sorted(places)}
    groups: dict[str, list[tuple[str, list[str]]]] = {}
    for pair in sorted(worst_first, key=lambda pair: -many[worst_first[pair][0]]):
        worst, other = worst_first[pair]
        groups.setdefault(worst, []).append((other, list(places[pair])))
    values = {"groups": groups, "many": many, "waiting": len(rows)}
    return Shown("conflicts.html", "Conflicts", values)
