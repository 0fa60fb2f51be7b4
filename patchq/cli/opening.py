"""The gate of the repository that a command is called in."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from patchq.cli import output
from patchq.gate.api import Gate
from patchq.gate.api.location import Options


def options(args: Namespace) -> Options:
    """Return the repository, and what the command line says of it."""
    return Options(
        args.directory,
        args.config,
        getattr(args, "home", None),
        getattr(args, "home_remote", None),
        "debug" if args.verbose else "error" if args.quiet else None,
        partial(output.notice, args),
    )


def gate(args: Namespace) -> Gate:
    """Return the gate of the command, which closes it at its end."""
    if "gate" not in args:
        args.gate = args.opened.enter_context(Gate(options(args)))
    found: Gate = args.gate
    return found


def command(args: Namespace) -> list[str]:
    """Return the words that start patchq again as it was called."""
    return options(args).command + ["-q"] * args.quiet + ["-v"] * args.verbose
