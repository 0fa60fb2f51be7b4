"""`patchq apply`: one response through the whole pipeline now, without the inbox."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from patchq.cli import arguments, check, confirm, opening, output
from patchq.land import worker
from patchq.model.report import Report
from patchq.review import restack

ARGUMENTS = (arguments.RESPONSE,)


def run(args: Namespace) -> int:
    world = opening.open_world(args)
    world.check_that_it_decides()
    data, name = arguments.read_response(args.file)
    choice = None
    if args.file != "-" and confirm.possible(args, world.config):
        try:
            choice = confirm.Asker(world)(check.unread(world, data, name))
        except confirm.Quit:
            return 130
    reports: list[Report] = []
    claim = world.queue.adopt(data, name, choice.to_json() if choice else None)
    claim = replace(claim, problem=check.oversize(world, data))
    worker.work([claim], world, reports.append, choice)
    restack.settle(world)
    verdicts = output.Verdicts(args)
    for report in reports:
        verdicts(report)
    return verdicts.exit_code
