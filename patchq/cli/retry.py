"""`patchq retry`: decide again on a response that was refused, discarded or waits."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import accept, common
from patchq.model.report import Report
from patchq.review import retry

HELP = "decide again on a response, on the branches as they are now"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")
    parser.add_argument(
        "--without", metavar="E,…", type=accept.ids, help="all but these edits", default=frozenset()
    )


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False)
    refused = 0

    def tell(report: Report) -> None:
        nonlocal refused
        refused += report["state"] == "rejected"
        common.say(args, report)

    retry.retry(world, args.id, args.without, tell)
    return 1 if refused else 0
