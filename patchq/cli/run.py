"""`patchq run`: work off what waits, then exit."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial

from patchq.cli import confirm, opening, output
from patchq.cli.arguments import Argument
from patchq.cli.tenure import Tenure
from patchq.gate.errors import Interrupted
from patchq.gate.service.serve import drain

ARGUMENTS = (
    Argument("--target", dest="home", metavar="B", help="the home branch, as `patchq init` has it"),
)


def run(args: Namespace) -> int:
    session = opening.gate(args).session()
    tenure = Tenure(args, session, partial(output.say, args), lasting=False)
    opening.gate(args).setup_log(session.config)
    opening.gate(args).notice_difference(session.judged_by)
    with suppress(confirm.Quit, Interrupted):  # what was in hand waits for the next run
        if session.config.has_cluster:
            from patchq.cli.feeding import drain_cluster  # takes the database's driver

            drain_cluster(args, tenure)
        else:
            drain(tenure.session, tenure.control, tenure.tell, tenure.upkeep)
    if tenure.ended_early:
        return 130
    return 1 if tenure.upkeep.verdicts["rejected"] else 0
