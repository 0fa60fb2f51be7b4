"""`patchq` alone: the commands in their groups, and what to do next here."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output, parsing
from patchq.cli.verbs import VERBS
from patchq.gate.errors import Fault
from patchq.gate.git import records
from patchq.gate.pipeline import history
from patchq.gate.queue.lock import lock_owner


def run(args: Namespace) -> int:
    next = _next(args)
    groups = {group: {name: VERBS[name] for name in names} for group, names in parsing.listed()}
    head = "patchq, the gate between LLM agents and git branches\n"
    tail = f"next: {next}\n`patchq COMMAND --help` tells what a command takes."
    return output.emit(args, {"commands": groups, "next": next}, head, parsing.table(), tail)


def _next(args: Namespace) -> str:
    """What to do next in the repository that the command is called in."""
    try:
        context = opening.gate(args).context()
        if not context.queue_root.is_dir():
            return "`patchq init` makes the queue of this repository"
        works, waits = lock_owner(context.queue_root) is not None, context.queue.depth()
        proposed = len(history.ids(context.repo, records.WAITING))
    except Fault as fault:
        return "; ".join(filter(None, (fault.message, fault.hint)))
    if waits and not works:
        return f"{waits} in the inbox and nobody at work: `patchq watch`, or `patchq run` once"
    if proposed:
        return f"{proposed} for review: `patchq status`, then `patchq show ID`, `patchq accept ID`"
    if not works:
        return "`patchq watch` serves the queue, and `patchq submit FILE` feeds it"
    return "`patchq submit FILE` feeds the queue"
