"""`patchq train`: land what was accepted and waits."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from pathlib import Path

from patchq.cli import opening
from patchq.cli.accept import Progress, report
from patchq.cli.arguments import Argument

ARGUMENTS = (
    # The daemon's child ends with it.
    Argument("--child", action="store_true", help=SUPPRESS),
    Argument("--log", metavar="FILE", type=Path, help=SUPPRESS),
)


def run(args: Namespace) -> int:
    if args.child:
        from patchq.gate.service.children import end_with_parent

        end_with_parent()
    gate = opening.gate(args)
    gate.setup_log(gate.context().config, args.log)
    progress = Progress(args)
    decided = gate.run_trains(progress.say)
    codes = [report(args, one, 2) for one in decided]
    progress.end()
    return max(codes, default=0)
