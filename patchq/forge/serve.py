"""Rounds until the process ends: what keeps one from its end is noted, and rests grow."""

from __future__ import annotations

from pathlib import Path
from time import sleep

from patchq.forge.sync import Sync
from patchq.forge.wire import Away
from patchq.gate.api import Gate
from patchq.gate.api.shared import SharedGate
from patchq.gate.errors import Fault
from patchq.gate.queue.shelf import Troubles

TROUBLE = "forge"
_LONGEST_REST = 300.0


def serve(shared: SharedGate, sync: Sync, log: Path | None = None) -> None:
    """Keep both sides in step for ever; `log` is the daemon's."""
    rest = 0.0
    while True:
        with shared.gate(writes=True) as gate:
            context = gate.context()
            if log:
                gate.setup_log(context.config, log)
            rest = turn(gate, sync, rest)
            pause = context.config.forge.poll_seconds
        sleep(rest or pause)


def turn(gate: Gate, sync: Sync, rest: float) -> float:
    """Make rounds; return the seconds to rest where they do not end well, after `rest` before."""
    context = gate.context()
    troubles, pause = Troubles(context.queue_root), context.config.forge.poll_seconds
    try:
        sync.rounds(gate)
    except Fault as fault:
        troubles.note(TROUBLE, fault.message, fault.hint or "")
        asked = fault.seconds if isinstance(fault, Away) else 0.0
        return max(min(max(2 * rest, pause), _LONGEST_REST), asked)
    troubles.over(TROUBLE)
    return 0.0
