"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, cluster, opening, output
from patchq.review import revert

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    world = opening.open_world(args, targeted=False)
    lands = cluster.far(
        world, "revert", lambda id: revert.revert(world, id, verdicts), tell=verdicts
    )
    decided = lands(args.id)
    if decided.problems or decided.report["state"] == "reverted":
        return accept.report(args, decided)
    return verdicts.exit_code
