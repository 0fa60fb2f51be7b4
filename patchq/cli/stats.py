"""`patchq stats`: what became of responses, by agent, model or format."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from patchq.cli import output, places
from patchq.service import stats
from patchq.service.stats import Key
from patchq.text.quote import clip, visible

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
    world = places.open_world(args, targeted=False, writes=False)
    counts = stats.everything(world.queue, world.queue_root)
    rows = table(counts, args.by)
    output.emit(args, {"by": args.by, "rows": rows}, *_lines(rows, args.by))
    return 0


def table(counts: Mapping[Key, float], by: str | None) -> list[dict[str, Any]]:
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


def _lines(rows: list[dict[str, Any]], by: str | None) -> Iterator[str]:
    if not rows:
        yield "nothing was decided here yet"
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or '(not said)', 60))}: " if by else ""
        responses = f"{row['responses']} responses, " if by != "format" else ""
        yield f"{name}{responses}{_edits(row)} edits"
        for kind in _KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                yield f"  {kind:<12}" + ", ".join(f"{visible(value)} {n}" for value, n in sums)
        if row["truncated"]:
            yield f"  {'truncated':<12}{row['truncated']}"
