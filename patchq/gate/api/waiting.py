"""The one wait for a change: for its verdict, or for a later state."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from time import monotonic
from typing import get_args

from patchq.core.model.values import State
from patchq.gate.api import rows
from patchq.gate.api.location import OpenedQueue
from patchq.gate.api.submitting import Ticket
from patchq.gate.errors import TimeIsUp, UsageError
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.engine import store_queue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import OVER, REPLACED, Report, waits_for_its_agent
from patchq.gate.report.secrecy import batch_id
from patchq.gate.review import from_git
from patchq.gate.service.wake import Watcher

STATES = frozenset(get_args(State))
CHANGES_REQUESTED = "changes_requested"  # the state of a proposal that was sent back
VERDICT = STATES - {"held"}
_LOOK_SECONDS = 0.5  # decisions by plain git are no events, nor is a daemon that ends
_RESTART_SECONDS = 10.0  # for so long a daemon that went away may come back


def wait(
    opened: Callable[[], AbstractContextManager[OpenedQueue]],
    change: Ticket | str,
    until: Collection[str],
    timeout: float | None,
    *,
    served: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    unserved: Callable[[], None] = lambda: None,
) -> Report:
    """Return the report once it is in one of these states.

    A state that no other can follow ends the wait, too.  Raises `TimeIsUp` after `timeout` seconds,
    once `stopped`, and where a daemon has to have `served` the queue and none does.  Calls
    `unserved` when none does, or none any more, and there is no verdict.  The queue is open only
    to look.
    """
    end = math.inf if timeout is None else monotonic() + timeout
    with opened() as gate:
        root = gate.context().queue_root
        change = change if isinstance(change, Ticket) else rows.identify(gate.context(), change)
    patience, seen = 0.0 if lock_owner(root) is None else _RESTART_SECONDS, monotonic()
    notified = False
    watcher = Watcher(root, stopped=stopped)
    while True:
        watcher.read()
        serves = lock_owner(root) is not None  # first: who has gone has reported
        with opened() as gate:
            report = _look(gate.context(), change)
        if report and _has_come(report, until):
            return report
        now = monotonic()
        seen = now if serves else seen
        gone = not serves and now - seen >= patience
        if gone and not notified and report is None:
            unserved()
        notified = gone
        away = served and gone
        if stopped() or away or now >= end:
            late = "" if away else f"{round(timeout or 0, 1):g} s"
            why = "an interrupt" if stopped() else late
            with opened() as gate:
                raise _time_is_up(gate.context(), change, report, why)
        watcher.wait(min(end - now, _LOOK_SECONDS))


def _has_come(report: Report, until: Collection[str]) -> bool:
    sent_back = CHANGES_REQUESTED in until and waits_for_its_agent(report)
    return sent_back or report.state in until or report.state in OVER | REPLACED


def _look(context: RepoContext, change: Ticket | str) -> Report | None:
    if isinstance(change, Ticket):
        for id in reversed(context.queue.by_source(change.sha256)):
            report = context.queue.load(id)
            if report and report.source.name == change.file:
                return rows.seen(context, report)[0]
        return None
    try:
        return rows.seen(context, *from_git.find(context, change))[0]
    except UsageError:
        queue = store_queue(context.queue)
        # First: one that is not pending any more has its id.  What is no id never gets one.
        waits = queue.pending(change) is not None
        if waits or (batch_id(change) == change and queue.next_id(change) != change):
            return None
        raise


def _time_is_up(
    context: RepoContext, change: Ticket | str, report: Report | None, why: str
) -> TimeIsUp:
    id = report.id if report else change.id if isinstance(change, Ticket) else change
    state = f"change {id} {f'is {report.state}' if report else 'has no verdict'}"
    if not why:
        return TimeIsUp(
            f"{state}, and no daemon works on the queue",
            "it stays in the queue until `patchq watch` or `patchq run` runs; "
            f"`patchq wait {id}` waits on",
        )
    pending = store_queue(context.queue).pending(id)
    where = f"it is {pending.summary()}" if pending else "see `patchq status`"
    return TimeIsUp(f"{state} after {why}", f"{where}; `patchq wait {id}` waits on")
