"""`patchq formats`: the forms that are read, and the instructions for a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import output
from patchq.formats import registry
from patchq.model.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?")


def run(args: Namespace) -> int:
    formats = registry.FORMATS
    if args.name is None:
        output.emit(args, list(formats), *formats)
        return 0
    form = formats.named(args.name)
    if form is None:
        raise UsageError(f"there is no format {args.name!r}", "one of " + ", ".join(formats))
    result = {"name": form.name, "instructions": form.instructions}
    output.emit(args, result, form.instructions.rstrip())
    return 0
