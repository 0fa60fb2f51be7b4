"""`patchq formats`: the forms that are read, and the instructions for a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchq.cli import output
from patchq.formats.registry import FORMATS
from patchq.model.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?")


def run(args: Namespace) -> int:
    if args.name is None:
        output.emit(args, list(FORMATS), *FORMATS)
        return 0
    module = FORMATS.get(args.name.replace("-", "_").lower())
    if module is None:
        raise UsageError(f"there is no format {args.name!r}", "one of " + ", ".join(FORMATS))
    text: str = module.INSTRUCTIONS
    output.emit(args, {"name": module.NAME, "instructions": text}, text.rstrip())
    return 0
