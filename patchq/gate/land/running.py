"""The trains that run: one for each target, and how far each is.

The hold of a train ends with its process, and what is noted of it is believed as long as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from msgspec import Struct, json

from patchq.gate.errors import Fault
from patchq.gate.queue import store

# Behind it, the locked bytes of targets whose train runs, as far from those of sessions.
_TRAINS = 1 << 40


class RunningTrain(Struct, frozen=True):
    """A train in its `run`: the hooks check the `first` of those `joined`, or the target."""

    target: str
    run: int
    first: int
    joined: int
    hooks: Sequence[str]
    since: float
    """Seconds since the epoch."""


def hold(root: Path, target: str) -> int | None:
    """Return a descriptor that holds a target's train; None if another process holds it."""
    try:
        return store.hold(root, _byte(target))
    except (BlockingIOError, PermissionError):
        return None


def note(root: Path, train: RunningTrain) -> None:
    """Show others how far a train is; left out where it cannot be written."""
    with suppress(Fault):
        if found := store.there(root):
            found.remember(f"train.{train.target}", json.encode(train).decode())
    store.ring(root)


def running(root: Path) -> list[RunningTrain]:
    with suppress(Fault):
        statement = "select value from meta where key like 'train.%' order by key"
        known = store.ask(root, statement)
        trains = [json.decode(value, type=RunningTrain) for (value,) in known]
        return [train for train in trains if store.alive(root, _byte(train.target))]
    return []


def _byte(target: str) -> int:
    return _TRAINS + crc32(target.encode())
