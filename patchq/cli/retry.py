"""`patchq retry`: decide again on responses that were refused, discarded or wait."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, opening, output, several

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "--without",
        metavar="E,…",
        type=arguments.edit_ids,
        help="all but these edits",
        default=frozenset(),
    ),
)


def run(args: Namespace) -> int:
    several.only_one(args, "without")
    gate = opening.gate(args)

    def one(id: str) -> int:
        verdicts = output.Verdicts(args)
        gate.retry(id, args.without, verdicts)
        return verdicts.exit_code

    return several.decide(args, several.chosen(args, gate), one)
