"""`patchq accept`: land a proposal, whole or the chosen edits of it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator

from patchq.cli import opening, output
from patchq.cli.arguments import BATCH, Argument, edit_ids
from patchq.review import decide
from patchq.review.decide import Decided
from patchq.text.quote import visible

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
    return report(args, decide.accept(world, args.id, args.only, without))


def report(args: Namespace, decided: Decided) -> int:
    """Print what was decided, or why nothing was; the exit code."""
    if not decided.problems:
        output.say(args, decided.report)
        if not args.json and not args.quiet:
            for line in _beside(decided):
                print(visible(f"  {line}"))
        return 0
    for problem in decided.problems:
        first, *more = problem.message.split("\n")  # what a hook printed
        lines = [f"patchq: {problem.code}: {first}", *(f"  | {text}" for text in more)]
        lines += [f"  {problem.hint}"] if problem.hint else []
        print(*map(visible, lines), sep="\n", file=sys.stderr)
    return 1


def _beside(decided: Decided) -> Iterator[str]:
    """What the choice does beside what it says."""
    if decided.back:
        yield f"with edit {', '.join(decided.back)}, which the choice brings back"
    for id, need in decided.along:
        yield f"without edit {id} either, which needs edit {need}"
