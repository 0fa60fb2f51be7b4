"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from patchq.cli import common, confirm
from patchq.land import worker
from patchq.model.report import Report
from patchq.pipeline import overrides
from patchq.pipeline.overrides import WHOLE
from patchq.review import restack

HELP = "take one response through the whole pipeline now"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the response, or - for standard input")


def run(args: Namespace) -> int:
    world = common.open_world(args)
    data, name = common.read_response(args.file)
    choice = WHOLE
    if args.file != "-" and confirm.possible(args, world.config):
        try:
            choice = confirm.Asker(world)(common.unread(world, data, name))
        except confirm.Quit:
            return 130
    told: list[Report] = []
    claim = world.queue.adopt(data, name, overrides.to_json(choice))
    claim = replace(claim, problem=common.oversize(world, data))
    worker.work([claim], world, told.append, choice)
    restack.settle(world)
    for report in told:
        common.say(args, report)
    return 1 if any(report["state"] == "rejected" for report in told) else 0
