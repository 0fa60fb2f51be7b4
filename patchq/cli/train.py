"""`patchq train`: land what was accepted and waits."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Namespace
from pathlib import Path

from patchq.cli import opening
from patchq.cli.accept import Progress, report
from patchq.cli.arguments import Argument
from patchq.gate.review import accept

ARGUMENTS = (
    # The daemon's child ends with it.
    Argument("--child", action="store_true", help=SUPPRESS),
    Argument("--log", metavar="FILE", type=Path, help=SUPPRESS),
)


def run(args: Namespace) -> int:
    if args.child:
        from patchq.gate.service.trains import end_with_parent

        end_with_parent()
    session = opening.gate(args).session(targeted=False)
    opening.gate(args).setup_log(session.config, args.log)
    progress = Progress(args)
    decided = accept.resume(session, progress.say)
    codes = [report(args, one, 2) for one in decided]
    progress.end()
    return max(codes, default=0)


def command(args: Namespace) -> list[str]:
    """Return the words that start patchq again, for the same repository and configuration."""
    words = [sys.executable, "-m", "patchq", "-C", str(args.directory.resolve())]
    if args.config is not None:
        words += ["--config", str(args.config.resolve())]
    return words + ["-q"] * args.quiet + ["-v"] * args.verbose
