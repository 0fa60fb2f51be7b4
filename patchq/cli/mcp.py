"""`patchq mcp`: serve the queue as tools, for agents that speak the Model Context Protocol."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening
from patchq.cli.arguments import Argument

ARGUMENTS = (
    Argument(
        "--http", metavar="PORT", nargs="?", const="8325", help="by HTTP on this machine (8325)"
    ),
    Argument("--read-only", action="store_true", help="offer only what changes nothing"),
    Argument("--agent", metavar="NAME", help="who submits, in every response"),
)


def run(args: Namespace) -> int:
    from patchq import mcp

    args.options = opening.options(args)
    return mcp.serve(args)
