"""`patchq formats`: the forms that are read, and the instructions for a model."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, output
from patchq.core.formats.registry import FORMATS
from patchq.core.model.names import suggestion
from patchq.gate.errors import UsageError

ARGUMENTS = (arguments.Argument("name", metavar="NAME", nargs="?"),)


def run(args: Namespace) -> int:
    if args.name is None:
        return output.emit(args, list(FORMATS), *FORMATS)
    form = FORMATS.named(args.name)
    if form is None:
        cure = suggestion(args.name, FORMATS, "one of " + ", ".join(FORMATS))
        raise UsageError(f"there is no format {args.name!r}", cure)
    answer = {"name": form.name, "instructions": form.instructions}
    return output.emit(args, answer, form.instructions.rstrip())
