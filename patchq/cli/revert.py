"""`patchq revert`: take a batch that landed back, by a batch of its own."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, opening, output

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    verdicts = output.Verdicts(args)
    decided = opening.gate(args).revert(args.id, verdicts)
    if decided.problems or decided.report.state == "reverted":
        return accept.report(args, decided)
    return verdicts.exit_code
