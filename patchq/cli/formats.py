"""`patchq formats`: the forms that are read, and the instructions for a model."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import arguments, output
from patchq.formats import registry
from patchq.model.errors import UsageError

ARGUMENTS = (arguments.Argument("name", metavar="NAME", nargs="?"),)


def run(args: Namespace) -> int:
    formats = registry.FORMATS
    if args.name is None:
        return output.emit(args, list(formats), *formats)
    form = formats.named(args.name)
    if form is None:
        raise UsageError(f"there is no format {args.name!r}", "one of " + ", ".join(formats))
    result = {"name": form.name, "instructions": form.instructions}
    return output.emit(args, result, form.instructions.rstrip())
