"""The gate of the repository that a command is called in."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli import output
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.api.location import Options
from patchq.gate.errors import needs_extra

if TYPE_CHECKING:
    from patchq.forge.sync import Sync


def options(args: Namespace) -> Options:
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


def synced(args: Namespace, gate: Gate) -> Sync:
    with needs_extra("forge"):
        from patchq.forge import connect
        from patchq.forge.sync import Sync

    def say(text: str) -> None:
        if not args.quiet:
            print(visible(text), flush=True)

    context = gate.context(targeted=True)
    return Sync(connect.project_of(context.repo, context.config), say)


def command(args: Namespace) -> list[str]:
    """Return the words that start patchq again as it was called."""
    return options(args).command + ["-q"] * args.quiet + ["-v"] * args.verbose


def own_words() -> list[str]:
    """Return the words that start this very patchq, whatever PATH is."""
    scripts = (Path(sys.argv[0]), Path(sys.executable).with_name("patchq"))
    script = next((one for one in scripts if one.name == "patchq" and one.is_file()), None)
    return [os.path.abspath(script)] if script else [sys.executable, "-m", "patchq"]
