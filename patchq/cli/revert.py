"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, opening, output
from patchq.review import revert

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    decided = revert.revert(opening.open_world(args, targeted=False), args.id, verdicts)
    if decided.problems or decided.report["state"] == "reverted":
        return accept.report(args, decided)
    return verdicts.exit_code
