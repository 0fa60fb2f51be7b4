"""`patchq backup FILE`: write a copy of the queue's store, whoever works on it meanwhile."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from patchq.cli import arguments, opening, output
from patchq.gate.errors import UsageError

ARGUMENTS = (arguments.Argument("file", metavar="FILE", help="a file that is not there yet"),)


def run(args: Namespace) -> int:
    file = Path(args.file)
    if file.exists():
        raise UsageError(f"{file} is there already", "name a file that is not there")
    gate = opening.gate(args)
    gate.queue(gate.location.rules().config).store.backup(file)
    return output.emit(args, {"file": str(file)}, str(file))
