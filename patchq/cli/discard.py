"""`patchq discard`: take proposals or held batches away."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, opening, several

ARGUMENTS = (
    *several.BATCHES,
    arguments.Argument(
        "-m",
        "--message",
        metavar="WHY",
        type=arguments.words,
        help="the reason, which its agent sees",
    ),
)


def run(args: Namespace) -> int:
    gate = opening.gate(args)
    ids = several.chosen(args, gate)
    why = args.message
    return several.decide(
        args, ids, lambda id: accept.report(args, gate.discard(id, why), len(ids))
    )
