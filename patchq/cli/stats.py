"""`patchq stats`: what became of responses, by agent, model or format."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping
from typing import Any

from patchq.cli import common
from patchq.service import stats
from patchq.service.stats import Key
from patchq.text.quote import clip, visible

HELP = "count verdicts, match rungs and reasons"
_PLACES = {"agent": 1, "model": 2, "format": 3}
_KINDS = {
    "verdict": "verdicts",
    "match": "matches",
    "edit": "edits",
    "reason": "refusals",
    "correction": "corrections",
    "attempt": "attempts",
}
_OF_EDITS = ("match", "edit", "correction")
"""What is counted for each format; the rest is of whole responses."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--by", choices=_PLACES, help="a row for each of these, in place of one")


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False, writes=False)
    counts = stats.everything(world.queue, world.queue_root)
    rows = told(counts, args.by)
    common.emit(args, {"by": args.by, "rows": rows}, lambda: _table(rows, args.by))
    return 0


def told(counts: Mapping[Key, float], by: str | None) -> list[dict[str, Any]]:
    """A row for each agent, model or format, the busiest first; without `by`, one for all."""
    groups: dict[str, dict[str, Counter[str]]] = {}
    for key, number in counts.items():
        kind = key[0]
        if kind not in (*_KINDS, "truncated") or (by == "format" and kind not in _OF_EDITS):
            continue
        name = key[_PLACES[by]] if by else ""
        group = groups.setdefault(name, {kind: Counter() for kind in (*_KINDS, "truncated")})
        group[kind][key[4]] += int(number)
    rows = [
        {
            "name": name or None,
            "responses": sum(group["verdict"].values()),
            **{_KINDS[kind]: dict(sorted(group[kind].items())) for kind in _KINDS},
            "truncated": group["truncated"].total(),
        }
        for name, group in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row["responses"], -_edits(row), row["name"] or ""))


def _edits(row: Mapping[str, Any]) -> int:
    return int(sum(row["edits"].values()))


def _table(rows: list[dict[str, Any]], by: str | None) -> str:
    if not rows:
        return "nothing was decided here yet"
    parts = []
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or '(not said)', 60))}: " if by else ""
        head = f"{row['responses']} responses, {_edits(row)} edits"
        if by == "format":
            head = f"{_edits(row)} edits"
        lines = [name + head]
        for kind in _KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                figures = ", ".join(f"{visible(value)} {n}" for value, n in sums)
                lines.append(f"  {kind:<12}{figures}")
        if row["truncated"]:
            lines.append(f"  {'truncated':<12}{row['truncated']}")
        parts.append("\n".join(lines))
    return "\n".join(parts)
