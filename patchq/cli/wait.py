"""`patchq wait`: until a batch has its verdict, or a later state."""

from __future__ import annotations

from argparse import Namespace
from typing import get_args

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument
from patchq.core.model.values import State
from patchq.gate.api.waiting import CHANGES_REQUESTED
from patchq.gate.report.schema import STANDING, waits_for_its_agent

ARGUMENTS = (
    arguments.BATCH,
    Argument(
        "--for",
        dest="wanted",
        metavar="STATE",
        action="append",
        choices=(*get_args(State), CHANGES_REQUESTED),
        help="until it has this state, or one of several (its verdict); of %(choices)s",
    ),
    Argument(
        "--timeout", metavar="S", type=arguments.seconds, help="for so many seconds; then exit 124"
    ),
)


def run(args: Namespace) -> int:
    wanted = args.wanted or ()
    report = opening.gate(args).wait(args.id, wanted, args.timeout)
    output.Verdicts(args, pages=True)(report)
    asked = CHANGES_REQUESTED in wanted and waits_for_its_agent(report)
    return int(not asked and report.state not in (wanted or STANDING | {"duplicate"}))
