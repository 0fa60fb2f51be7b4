"""Measure what may not grow, and compare each ratio with its goal.

Each part measures one cost at several sizes, in rounds whose contenders run in turn.  Exit 0 when
every goal is met, 1 when one is missed, 2 when it cannot be used, 3 when it could not measure.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.console import command_line, say, trial_options, tried
from bench.speed.cost import page
from bench.speed.cost.checkout import checkout
from bench.speed.cost.doors import doors
from bench.speed.cost.finished import finished
from bench.speed.cost.ground import Ground, Part
from bench.speed.cost.landing import landing
from bench.speed.cost.listing import listing
from bench.speed.cost.memory import memory
from bench.speed.cost.packs import packs
from bench.speed.cost.reading import reading
from bench.speed.cost.refusing import refusing
from bench.speed.cost.starting import oracle, starting
from bench.speed.cost.waiting import waiting
from bench.speed.goal import Found, all_met, record, table

PARTS: dict[str, Part] = {
    "checkout": checkout,
    "doors": doors,
    "landing": landing,
    "listing": listing,
    "memory": memory,
    "packs": packs,
    "finished": finished,
    "reading": reading,
    "refusing": refusing,
    "starting": starting,
    "oracle": oracle,
    "waiting": waiting,
}


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.speed.cost", __doc__)
    add = parser.add_argument
    add("--only", metavar="PART", action="append", choices=PARTS, help="of %(choices)s")
    add("--rounds", type=int, default=3, metavar="N")
    add("--quick", action="store_true", help="small sizes, one round; its verdicts say little")
    trial_options(parser, json=True)
    add("--write", action="store_true", help="write the tables of docs/performance.md")
    add("--rates", type=Path, metavar="FILE", help="with --write: of bench.speed --json, as well")
    add("--page", type=Path, default=page.PAGE, metavar="FILE", help="where the tables stand")
    args = parser.parse_args(words)
    if args.quick:
        args.rounds = 1
    return args


def measure(args: argparse.Namespace, command: list[str]) -> Found:
    """The goals of each part, in a place of its own that is gone afterwards."""
    found: Found = {}
    for name in args.only or PARTS:
        with tempfile.TemporaryDirectory(prefix=f"patchq-{name}-", dir=args.work) as place:
            room, home = Path(place), Path(place) / "home"
            home.mkdir()
            found[name] = []
            for goal in PARTS[name](Ground(room, home, command, args.rounds, args.quick)):
                say(f"{name}: {goal.line()}")
                found[name].append(goal)
    return found


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)

    def trial(command: list[str]) -> int:
        found = measure(args, command)
        print(table(found, "ratio"))
        if args.json:
            args.json.write_text(record(found))
        if args.write:
            text = page.written(args.page.read_text(), found, PARTS, args.rates)
            args.page.write_text(text)
        return 0 if all_met(found) else 1

    return tried("cost", args.command, trial)


if __name__ == "__main__":
    sys.exit(main())
