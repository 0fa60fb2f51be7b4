"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import accept, common
from patchq.model.report import Report
from patchq.review import revert

HELP = "take a batch that landed back"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False)
    refused = 0

    def tell(report: Report) -> None:
        nonlocal refused
        refused += report["state"] == "rejected"
        common.say(args, report)

    decided = revert.revert(world, args.id, tell)
    if decided.problems or decided.report["state"] == "reverted":
        return accept.tell(args, decided)
    return 1 if refused else 0
