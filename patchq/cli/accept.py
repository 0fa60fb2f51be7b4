"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output
from patchq.cli.arguments import BATCH, Argument, edit_ids
from patchq.review import decide

ARGUMENTS = (
    BATCH,
    (
        Argument("--only", metavar="E,…", type=edit_ids, help="these edits and what they need"),
        Argument("--without", metavar="E,…", type=edit_ids, help="all but these edits"),
    ),
)


def run(args: Namespace) -> int:
    world = opening.open_world(args, targeted=False)
    without = args.without or frozenset()
    return output.decision(args, decide.accept(world, args.id, args.only, without))
