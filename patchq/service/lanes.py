"""Serve lanes of a shared queue: take over what others left, work, and wait on the database.

A worker decides and lands as the daemon does on one machine.  What it loses with its connection it
leaves to whoever comes first, itself included; so a fault of the database only makes it begin
again, after a pause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from patchq.git.files import keep_heap_small
from patchq.git.tidying import Combining, Tidying
from patchq.land import worker
from patchq.model.errors import Fault
from patchq.model.report import WAITING
from patchq.pipeline.requests import RequestDesk
from patchq.pipeline.world import World
from patchq.queue import QueueEngine
from patchq.review import errands
from patchq.service.serve import Control

_LOG = logging.getLogger("patchq")
_LOOK_SECONDS = 2.0
_FIRST_PRUNE_SECONDS, _PRUNE_SECONDS = 60.0, 3600.0
_MOST_PRUNED = 1000
_DAY = 86_400.0
_FIRST_REST, _LONGEST_REST = 0.2, 5.0


class LaneQueue(QueueEngine, Protocol):
    """What a worker needs of a queue beside its protocol."""

    def orphaned(self) -> bool: ...

    def asked(self) -> list[tuple[int, Mapping[str, Any], bool]]: ...

    def done(self, number: int, answer: Mapping[str, Any]) -> None: ...

    def acting_for(self, feeder: str | None) -> AbstractContextManager[None]:
        """What comes into the queue in the block is told to that feeder as well."""

    def wait(self, seconds: float) -> bool: ...

    def ring(self) -> None: ...


def serve_lanes(
    world: World,
    queue: LaneQueue,
    control: Control,
    tell: worker.Tell,
    poll_seconds: float,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Work until `control.stop`."""
    keep_heap_small()
    control.ring, control.cut_short = queue.ring, world.stop.set
    desk = RequestDesk(world, queue.ring)
    world = replace(world, desk=desk, pulse=partial(control.pulse, world, alive))
    rest, looked, searched, begun = _FIRST_REST, 0.0, 0.0, False
    prunes = monotonic() + _FIRST_PRUNE_SECONDS
    tidying, packs = Tidying(world.repo), Combining(world.repo)
    try:
        while not control.stop:
            alive()
            try:
                if due := monotonic() - searched >= poll_seconds:
                    searched = monotonic()
                if not begun or (due and queue.orphaned()):
                    worker.start(world, tell, patience=0.0 if begun else 5.0)
                    begun = True
                if packs.turn():
                    world.repo.renew()
                if worker.turn(world, tell) + _carry_out(world, queue):
                    looked, tidying.due = 0.0, True
                    continue
                tidying.turn()
                if monotonic() >= prunes:
                    prunes = monotonic() + _PRUNE_SECONDS
                    _prune(world)
                if monotonic() - looked >= _LOOK_SECONDS:
                    worker.look_at_held(world, tell)
                    looked = monotonic()
                if queue.wait(poll_seconds):
                    looked = 0.0  # a verdict may be what something here waits for
                rest = _FIRST_REST
            except Fault as fault:
                if not fault.retryable:
                    raise
                _LOG.warning("%s; it is tried again", fault.message)
                begun = False
                with suppress(Fault):
                    queue.release()
                _rest(rest, control)
                rest = min(2 * rest, _LONGEST_REST)
    finally:
        desk.close()
        packs.finish()


def _carry_out(world: World, queue: LaneQueue) -> int:
    """Do what people asked for; how much that was."""
    asked = queue.asked()
    for number, words, again in asked:
        feeder, errand = words.get("feeder"), {**words}
        errand.pop("feeder", None)
        with queue.acting_for(feeder):
            answer = errands.carry_out(world, errand, again=again)
        queue.done(number, answer)
    return len(asked)


def _prune(world: World) -> None:
    """Forget finished batches as `queue.retention_days` says, some at a time; proposals stay."""
    days = world.config.queue.retention_days
    if not days:
        return
    for id in islice(world.queue.older(world.clock() - days * _DAY), _MOST_PRUNED):
        report = world.queue.load(id)
        if report and report["state"] not in WAITING:
            world.queue.forget(id)


def _rest(seconds: float, control: Control) -> None:
    from threading import Event

    woken = Event()
    before, control.ring = control.ring, woken.set
    try:
        if not control.stop:
            woken.wait(seconds)
    finally:
        control.ring = before
