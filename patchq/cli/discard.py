"""`patchq discard`: take a proposal or a held batch away."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import accept, arguments, opening
from patchq.review import decide

ARGUMENTS = (arguments.BATCH,)


def run(args: Namespace) -> int:
    return accept.report(args, decide.discard(opening.open_world(args, targeted=False), args.id))
