"""`patchq stats`: what became of responses, by agent, model or format; what happened, by day."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from patchq.cli import arguments, opening, output
from patchq.core.text.quote import clip, visible
from patchq.gate.api.stats import BY, DAY, KINDS, edits

ARGUMENTS = (
    arguments.Argument("--by", choices=BY, help="a row for each of these, in place of one"),
)
_WORDS = {"batches": "changes"}


def run(args: Namespace) -> int:
    rows = opening.gate(args).stats(args.by)
    lines = _day_lines(rows) if args.by == DAY else _lines(rows, args.by)
    return output.emit(args, {"by": args.by, "rows": rows}, *lines)


def _day_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield f"{row['day']}  " + ", ".join(f"{kind} {n}" for kind, n in row["events"].items())
    if not rows:
        yield "nothing happened here yet"


def _lines(rows: list[dict[str, Any]], by: str | None) -> Iterator[str]:
    if not rows:
        yield "nothing was decided here yet"
    for row in rows:
        name = f"{by} {visible(clip(row['name'] or 'unknown', 60))}: " if by else ""
        responses = f"{row['responses']} responses, " if by != "format" else ""
        yield f"{name}{responses}{edits(row)} edits"
        for kind in KINDS.values():
            if row[kind]:
                sums = sorted(row[kind].items(), key=lambda item: (-item[1], item[0]))
                yield f"  {kind:<12}" + ", ".join(
                    f"{_WORDS.get(value) or visible(value)} {n}" for value, n in sums
                )
        if row["truncated"]:
            yield f"  {'truncated':<12}{row['truncated']}"
