"""`patchq worker`: decide on what a cluster's feeders entered, and land it on the shared remote."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from patchq.cli import arguments, opening, output

ARGUMENTS = (
    arguments.Argument(
        "--lanes", metavar="PATTERN", action="append", help="only these target branches"
    ),
    arguments.Argument("--name", metavar="N", help="what `patchq cluster status` calls it"),
)


def run(args: Namespace) -> int:
    tell = partial(output.log_and_say, args)
    return opening.gate(args).work(tell, name=args.name, lanes=args.lanes)
