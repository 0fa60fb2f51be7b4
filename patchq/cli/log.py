"""`patchq log`: every batch that has a verdict, the newest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq import observed
from patchq.cli import common

HELP = "list the batches, newest verdict first"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--limit", metavar="N", type=int, help="at most N batches")


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False, writes=False)
    ids = list(world.queue.ids())[::-1]
    for id in ids[: args.limit]:
        told = world.queue.load(id)
        if told is None:
            continue
        seen = observed.observe(world, told)
        shown = {**told, "state": seen.state}
        if args.json:
            common.say(args, shown)
        else:
            print(common.line(shown) + (f"  ({seen.note})" if seen.note else ""))
    return 0
