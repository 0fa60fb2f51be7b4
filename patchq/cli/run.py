"""`patchq run`: work off what waits, then exit."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial

from patchq.cli import confirm, opening, output, places
from patchq.cli.arguments import Argument
from patchq.cli.session import Session
from patchq.core.model.errors import Interrupted
from patchq.gate.service.serve import drain

ARGUMENTS = (
    Argument("--target", dest="home", metavar="B", help="the home branch, as `patchq init` has it"),
)


def run(args: Namespace) -> int:
    world = opening.open_world(args)
    session = Session(args, world, partial(output.say, args), lasting=False)
    places.setup_log(args, world.config)
    places.notice_difference(args, world.repo, world.judged_by)
    with suppress(confirm.Quit, Interrupted):  # what was in hand waits for the next run
        if "cluster" in world.config.given:
            from patchq.cli.feeding import drain_cluster  # takes the database's driver

            drain_cluster(args, session)
        else:
            drain(session.world, session.control, session.tell, session.upkeep, session.refresh)
    if session.ended_early:
        return 130
    return 1 if session.upkeep.verdicts["rejected"] else 0
