"""`patchq formats`: the forms that are read, and the instructions for a model."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, output
from patchq.core.formats.registry import FORMATS

ARGUMENTS = (arguments.Argument("name", metavar="NAME", nargs="?"),)


def run(args: Namespace) -> int:
    if args.name is None:
        return output.emit(args, list(FORMATS), *FORMATS)
    form = FORMATS.named(args.name) or FORMATS[arguments.known("format", args.name, FORMATS)]
    answer = {"name": form.name, "instructions": form.instructions}
    return output.emit(args, answer, form.instructions.rstrip())
