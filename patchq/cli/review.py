"""`patchq review`: look at what waits, and decide: on a page in the browser."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import page
from patchq.cli.arguments import Argument, port

ARGUMENTS = (
    Argument("--port", metavar="N", type=port, help="of the page; 0 for any that is free"),
    Argument("--no-open", action="store_true", help="print the address, and open no browser"),
)


def run(args: Namespace) -> int:
    return page.serve(args)
