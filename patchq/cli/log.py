"""`patchq log`: every batch that has a verdict, the newest first.

What the queue has lost, git still tells: such batches come behind the queue's own, by the times of
their commits.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice

from patchq.cli import arguments, batches, output, places
from patchq.model.report import Report
from patchq.pipeline.ground import Ground
from patchq.review import from_git

ARGUMENTS = (
    arguments.Argument(
        "-n", "--limit", metavar="N", type=arguments.positive, help="at most N batches"
    ),
)


def run(args: Namespace) -> int:
    ground = places.open_ground(args)
    for report, note in islice(_newest_first(ground), args.limit):
        if args.json:
            output.say(args, report)
        else:
            print(output.line(report) + (f"  ({note})" if note else ""))
    return 0


def _newest_first(ground: Ground) -> Iterator[tuple[Report, str]]:
    """The reports as they stand now, each with what there is to say of it."""
    ids = list(ground.queue.ids())[::-1]
    for id in ids:
        if report := ground.queue.load(id):
            yield batches.seen(ground, report)
    for report in from_git.missing(ground, ids):
        yield batches.seen(ground, report, from_git.SAYS_SO)
