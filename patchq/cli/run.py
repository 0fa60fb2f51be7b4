"""`patchq run`: work off what waits, then exit."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial

from patchq.cli import confirm, opening, output
from patchq.cli.arguments import Argument
from patchq.gate.errors import Interrupted

ARGUMENTS = (
    Argument("--target", dest="home", metavar="B", help="the home branch, as `patchq init` has it"),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    config = gate.session().config
    ask = confirm.asker(args, config)
    with gate.service(partial(output.say, args), ask, lasting=False) as service:
        gate.setup_log(config)
        gate.notice_difference(service.session.judged_by)
        with suppress(confirm.Quit, Interrupted):  # what was in hand waits for the next run
            service.drain()
    if service.control.interrupted:
        return 130
    return 1 if service.upkeep.verdicts["rejected"] else 0
