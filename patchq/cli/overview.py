"""`patchq` alone: the state of the queue, the commands of every day, and the next one."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output, parsing
from patchq.cli.verbs import GROUPS, VERBS
from patchq.gate.errors import Fault
from patchq.gate.git import records
from patchq.gate.pipeline import history
from patchq.gate.queue.lock import lock_owner

_EVERY_DAY = "every day"
_SHOWN = {"show": "show ID", "accept": "accept ID", "send-back": "send-back ID -m TEXT"}


def run(args: Namespace) -> int:
    state, next = _now(args)
    groups = {group: {name: VERBS[name] for name in names} for group, names in parsing.listed()}
    rows = (f"  {_SHOWN.get(name, name):<21} {VERBS[name]}" for name in GROUPS[_EVERY_DAY])
    lines = (state, "", *rows, "", f"next: {next}", "`patchq --help` lists all commands")
    return output.emit(args, {"commands": groups, "state": state, "next": next}, *lines)


def _now(args: Namespace) -> tuple[str, str]:
    """Return the state of the queue of this repository in one line, and what to do next."""
    try:
        context = opening.gate(args).context()
        works, waits = lock_owner(context.queue_root) is not None, context.queue.depth()
        proposed = len(history.ids(context.repo, records.WAITING))
    except Fault as fault:
        return fault.message, fault.hint or "see `patchq doctor`"
    if not context.queue_root.is_dir():
        return "no queue in this repository", "`patchq setup` makes one, for agents and for you"
    state = "; ".join(
        (
            f"{context.target or 'no target'}, {context.config.mode} mode",
            "watching" if works else "no daemon",
            f"{waits} in the inbox" if waits else "inbox empty",
            f"{proposed} for review",
        )
    )
    if waits and not works:
        return state, "`patchq watch` works off the inbox, `patchq run` once"
    if proposed:
        return state, "`patchq status`, then `patchq show ID`"
    if not works:
        return state, "`patchq watch` serves the queue, and `patchq submit FILE` feeds it"
    return state, "`patchq submit FILE` feeds the queue"
