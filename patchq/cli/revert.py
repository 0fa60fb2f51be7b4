"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, deciding, opening, output
from patchq.gate.review.errands import Revert

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    session = opening.gate(args).session(targeted=False)
    decided = deciding.decide(session, Revert(args.id), verdicts)
    if decided.problems or decided.report.state == "reverted":
        return accept.report(args, decided)
    return verdicts.exit_code
