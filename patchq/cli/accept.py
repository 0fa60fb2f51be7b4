"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import arguments, opening, output
from patchq.review import decide


def add_arguments(parser: ArgumentParser) -> None:
    arguments.add_batch(parser)
    which = parser.add_mutually_exclusive_group()
    edits = arguments.edit_ids
    which.add_argument("--only", metavar="E,…", type=edits, help="these edits and what they need")
    which.add_argument("--without", metavar="E,…", type=edits, help="all but these edits")


def run(args: Namespace) -> int:
    world = opening.open_world(args, targeted=False)
    decided = decide.accept(world, args.id, args.only, args.without or frozenset())
    return output.decision(args, decided)
