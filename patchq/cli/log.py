"""`patchq log`: the batches that have a verdict, the newest first, so many of them.

Of batches whose report the queue gave up, or lost, git and the register of ids still tell.  Those
that git alone knows come last, by the times of their commits.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from itertools import islice

from patchq.cli import arguments, batches, output, places
from patchq.model.report import Report
from patchq.pipeline.ground import Ground
from patchq.review import from_git

MOST = 50
ARGUMENTS = (
    (
        arguments.Argument(
            "-n",
            "--limit",
            metavar="N",
            type=arguments.positive,
            default=MOST,
            help=f"at most N batches ({MOST})",
        ),
        arguments.Argument(
            "--all", action="store_const", const=None, dest="limit", help="every batch"
        ),
    ),
)


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    found = newest_first(ground, args.limit or sys.maxsize)
    for report, note in islice(found, args.limit):
        if args.json:
            output.say(args, report)
        else:
            print(output.line(report) + (f"  ({note})" if note else ""))
    if next(found, None) and not args.quiet:
        print("older batches are left out: see --limit, --all", file=sys.stderr)
    return 0


def newest_first(ground: Ground, most: int) -> Iterator[tuple[Report, str]]:
    """The reports as they stand now, each with what there is to say of it; `most` is how many are
    probably wanted."""
    ids, seen = ground.queue.newest(), set[str]()
    while some := list(islice(ids, min(most + 1, 1000))):
        seen.update(some)
        reports = {id: report for id in some if (report := ground.queue.load(id))}
        gone = from_git.gone(ground, set(some) - reports.keys())
        for id in some:
            if report := reports.get(id):
                yield batches.seen(ground, report)
            elif id in gone:
                yield batches.seen(ground, *gone[id])
    for report in from_git.missing(ground, seen):
        yield batches.seen(ground, report, from_git.SAYS_SO)
