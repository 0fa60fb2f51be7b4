"""`patchq` alone: the state of the queue, the commands of every day, and the next one."""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import opening, output, parsing
from patchq.cli.verbs import GROUPS, VERBS
from patchq.gate.errors import Fault

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
        gate = opening.gate(args)
        now = gate.status(limit=0)
    except Fault as fault:
        return fault.message, fault.hint or "see `patchq doctor`"
    if not gate.context().queue_root.is_dir():
        return "no queue in this repository", "`patchq setup` makes one, for agents and for you"
    works, waits = now.daemon is not None, now.inbox
    proposed = sum(count for block, count in now.counts.items() if block != "held")
    daemon = "watching" if works else "no daemon"
    inbox = f"{waits} in the inbox" if waits else "inbox empty"
    place = f"{now.target or 'no target'}, {now.mode} mode"
    state = "; ".join((place, daemon, inbox, f"{proposed} for review"))
    if waits and not works:
        return state, "`patchq watch` works off the inbox, `patchq run` once"
    if proposed:
        return state, "`patchq status`, then `patchq show ID`"
    if not works:
        return state, "`patchq watch` serves the queue, and `patchq submit FILE` feeds it"
    return state, "`patchq submit FILE` feeds the queue"
