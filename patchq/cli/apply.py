"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq import report, worker
from patchq.cli import common
from patchq.world import Draft

HELP = "take one response through the whole pipeline now"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def run(args: Namespace) -> int:
    world = common.open_world(args)
    common.setup_log(args, world.config)
    data, name = common.read_response(args.file)
    told: list[Draft] = []
    worker.work([world.queue.adopt(data, name)], world, told.append)
    for draft in told:
        common.say(args, report.to_json(draft.outcome()))
    return 1 if any(draft.state == "rejected" for draft in told) else 0
