"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq import waiting, worker
from patchq.cli import common, confirm
from patchq.queue import Report
from patchq.world import WHOLE

HELP = "take one response through the whole pipeline now"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def run(args: Namespace) -> int:
    world = common.open_world(args)
    common.setup_log(args, world.config)
    data, name = common.read_response(args.file)
    choice = WHOLE
    if args.file != "-" and confirm.possible(args, world.config):
        try:
            choice = confirm.Asker(world)(common.unread(data, name))
        except confirm.Quit:
            return 130
    told: list[Report] = []
    worker.work([world.queue.adopt(data, name)], world, told.append, choice)
    waiting.settle(world)
    for report in told:
        common.say(args, report)
    return 1 if any(report["state"] == "rejected" for report in told) else 0
