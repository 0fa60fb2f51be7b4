"""`patchq review`: look at what waits, and decide: on a page in the browser, or in the terminal."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening
from patchq.cli.arguments import Argument, port

ARGUMENTS = (
    Argument("--next", action="store_true", help="here in the terminal, one after the other"),
    Argument("--port", metavar="N", type=port, help="of the page; 0 for any that is free"),
    Argument("--no-open", action="store_true", help="print the address, and open no browser"),
)


def run(args: Namespace) -> int:
    if args.next:
        from patchq.cli import walk

        return walk.run(args)
    from patchq import page

    return page.serve(args, opening.options(args))
