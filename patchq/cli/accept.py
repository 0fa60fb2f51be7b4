"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from patchq.cli import common
from patchq.review import decide
from patchq.review.decide import Decided
from patchq.text.quote import visible

HELP = "land a proposal on its target"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="E,…", type=ids, help="these edits and what they need")
    which.add_argument("--without", metavar="E,…", type=ids, help="all but these edits")


def ids(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def run(args: Namespace) -> int:
    world = common.open_world(args, targeted=False)
    decided = decide.accept(world, args.id, args.only, args.without or frozenset())
    return tell(args, decided)


def tell(args: Namespace, decided: Decided) -> int:
    """Print what was decided, or why nothing was; the exit code."""
    if not decided.problems:
        common.say(args, decided.report)
        if decided.back and not args.json and not args.quiet:
            print(visible(f"  with edit {', '.join(decided.back)}, which the choice brings back"))
        return 0
    for problem in decided.problems:
        first, *more = problem.message.split("\n")
        print(visible(f"patchq: {problem.code}: {first}"), file=sys.stderr)
        for line in more:  # what a hook said
            print(visible(f"  | {line}"), file=sys.stderr)
        if problem.hint:
            print(visible(f"  {problem.hint}"), file=sys.stderr)
    return 1
