"""Measure a cluster of real processes on one machine, and compare each figure with its goal.

A PostgreSQL server, a bare remote, a feeder and workers on clones of it.  `--faults SECONDS` breaks
them at random, `--points N` at each point of their work so often; then the remote's history judges
the reports.  Exit 0 when every goal is met, 1
when one is missed or something is wrong, 2 when it cannot be used, 3 when it could not measure.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.cluster import server
from bench.cluster.faults import faults
from bench.cluster.ground import ClusterGround
from bench.cluster.points import AWAY, HEAD, points
from bench.cluster.waits import latency, takeover
from bench.cluster.work import cost, many_branches, one_branch
from bench.console import command_line, say, trial_options, tried
from bench.ending import cleaned_up
from bench.speed.goal import Found, Goal, all_met, record, table

PARTS: dict[str, Callable[[ClusterGround], Iterator[Goal]]] = {
    "latency": latency,
    "takeover": takeover,
    "cost": cost,
    "one": one_branch,
    "many": many_branches,
}


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.cluster", __doc__)
    add = parser.add_argument
    add("--only", metavar="PART", action="append", choices=PARTS, help="of %(choices)s")
    add("--faults", type=float, metavar="SECONDS", help="only break it, for so long, and judge")
    add("--points", type=int, metavar="N", help="only break it at each point, so often, and judge")
    add("--among", default="", metavar="REGEX", help="of `POINT, FAULT`: only these")
    add("--away", type=float, default=AWAY, metavar="SECONDS", help="of the database (%(default)g)")
    add("--seed", type=int, default=0, metavar="N", help="of the faults (0)")
    add("--rounds", type=int, default=3, metavar="N")
    add("--quick", action="store_true", help="small sizes, one round; its verdicts say little")
    add("--database", metavar="CONNINFO", help="use this server; its work is not counted then")
    trial_options(parser, json=True)
    args = parser.parse_args(words)
    if args.quick:
        args.rounds = 1
    return args


@contextmanager
def standing(args: argparse.Namespace, command: Sequence[str]) -> Iterator[ClusterGround]:
    with ExitStack() as stack:
        own = None if args.database else stack.enter_context(server.running())
        database = args.database or (own.conninfo if own else "")
        place = tempfile.TemporaryDirectory(prefix="patchq-cluster-", dir=args.work)
        room = Path(stack.enter_context(place))
        yield ClusterGround(room, command, database, own, args.rounds, args.quick)


def measure(args: argparse.Namespace, ground: ClusterGround) -> Found:
    found: Found = {}
    for name in args.only or PARTS:
        found[name] = []
        for goal in PARTS[name](ground):
            say(f"{name}: {goal.line()}")
            found[name].append(goal)
    return found


def broken(args: argparse.Namespace, ground: ClusterGround) -> int:
    if args.points:
        rows = points(ground, args.points, args.seed, args.among, args.away)
        print("\n".join([HEAD, *(row.line() for row in rows)]))
        wrong = [one for row in rows for one in row.wrong]
    else:
        wrong = faults(ground, args.faults, args.seed)
    print("\n".join([*map(str, wrong), f"VIOLATED {len(wrong)}"]))
    return 1 if wrong else 0


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)

    def trial(command: list[str]) -> int:
        with cleaned_up(), standing(args, command) as ground:
            if args.faults or args.points:
                return broken(args, ground)
            found = measure(args, ground)
        print(table(found, "median"))
        if args.json:
            args.json.write_text(record(found))
        return 0 if all_met(found) else 1

    return tried("cluster", args.command, trial)


if __name__ == "__main__":
    sys.exit(main())
