"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output
from patchq.review import revert

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    world = opening.open_world(args, targeted=False)
    verdicts = output.Verdicts(args)
    decided = revert.revert(world, args.id, verdicts)
    if decided.problems or decided.report["state"] == "reverted":
        return output.decision(args, decided)
    return verdicts.exit_code
