"""`patchq retry`: decide again on a response that was refused, discarded or waits."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output
from patchq.review import decide

ARGUMENTS = (
    arguments.BATCH,
    arguments.Argument(
        "--without",
        metavar="E,…",
        type=arguments.edit_ids,
        help="all but these edits",
        default=frozenset(),
    ),
)


def run(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    decide.retry(opening.open_world(args, targeted=False), args.id, args.without, verdicts)
    return verdicts.exit_code
