"""Control of a process that serves a queue: signals, stop, and the rules as they are now.

Signals only set flags and ring the bell; the batch in hand is always finished.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from patchq.gate.config.schema import Config
from patchq.gate.errors import Busy, Fault, Interrupted, UsageError
from patchq.gate.pipeline.context import GateRules, branches_of, renewed
from patchq.gate.queue.inbox import replaced
from patchq.gate.queue.lock import STOP_NOW, Owner, activities, activity_text, lock_owner

if TYPE_CHECKING:  # `stop` needs none
    from patchq.gate.pipeline.session import Session

_LOG = logging.getLogger("patchq")
_WAIT_SECONDS = 60.0
_PATIENCE_SECONDS = 1.0  # after so long it says what is waited for
_PAUSE_SECONDS = 0.02


@dataclass
class Control:
    """Requests of signals; `now` leaves the batch in hand to the next start.

    `ring` ends a wait, `cut_short` what the batch in hand need not wait for, and `end_now` what
    runs beside the work.
    """

    stop: bool = False
    reload: bool = False
    interrupted: bool = False
    now: bool = False
    ring: Callable[[], None] = lambda: None
    cut_short: Callable[[], None] = lambda: None
    end_now: Callable[[], None] = lambda: None
    _announced: bool = False

    def install(self) -> None:
        """Catch the signals.

        SIGTERM and SIGINT stop after the batch in hand, SIGINT again or SIGUSR1 at once; SIGHUP
        reads the configuration anew.
        """
        for number in (signal.SIGTERM, signal.SIGINT, STOP_NOW, signal.SIGHUP):
            signal.signal(number, self._caught)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        again = number == STOP_NOW or (number == signal.SIGINT and self.interrupted)
        if again and not self.now:
            self.now = True
            self.end_now()
        self.interrupted |= number == signal.SIGINT
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
            self.cut_short()
        self.ring()

    def pulse(self, root: Path, alive: Callable[[], None]) -> None:
        """Raise `Interrupted` if the work is to end at once.

        What a stop waits for is logged once.  The thread that does the work calls it often.
        """
        alive()
        if self.now:
            raise Interrupted
        if self.stop and not self._announced:
            self._announced = True
            waits = activity_text(activities(root), batches=True) or "what is in hand"
            _LOG.info("stopping after %s; Ctrl-C again, or `patchq stop --now`, ends that", waits)


def why_held(session: Session) -> Fault | None:
    """Return why no response may be taken in now, if there is a reason."""
    return session.judged_by.fault or replaced(session.queue_root / "inbox")


def by_tip(session: Session) -> Session:
    """Return the session under the rules at the home branch's tip."""
    rules = renewed(session.repo, session.judged_by)
    if rules.config is session.config:
        return session if rules is session.judged_by else replace(session, judged_by=rules)
    now = reloaded(session, lambda: rules)
    kept = replace(session.judged_by, refused_file=rules.data)
    return replace(session, judged_by=kept) if now is session else now


def reloaded(session: Session, load: Callable[[], GateRules]) -> Session:
    """Return the session under the rules as they are now.

    With wrong rules it stays the same, and the error is logged.
    """
    try:
        rules = load()
        config = rules.config
        if _cluster(config) != _cluster(session.config):
            raise UsageError("another `cluster` holds from the next start of the process")
        target = config.target or (rules.home.branch if rules.home else session.target)
        branches = branches_of(session.repo, session.queue_root, config, target, rules.home)
        if branches.tip(target) is None:
            raise UsageError(f"the target branch {target!r} does not exist")
    except UsageError as error:
        _LOG.error("the configuration is kept as it was: %s", error)
        return session
    old = session.config
    _LOG.info("configuration read anew")
    if (config.landing, config.targets, target) == (old.landing, old.targets, session.target):
        branches = session.branches
    return replace(session, config=config, target=target, branches=branches, judged_by=rules)


def _cluster(config: Config) -> object:
    return config.has_cluster, config.cluster


# ---------------------------------------------------------------- from another process


def stop(root: Path, say: Callable[[str], None], *, now: bool) -> int | None:
    """Ask the process to end, and return its id, or None without one.

    It returns once the process has ended.  `say` gets what it works on, after a while and as often
    as that changes.
    """
    until = monotonic() + _WAIT_SECONDS
    owner = lock_owner(root)
    if owner is None:
        return None
    pid = _ask(owner, now=now)
    waits_for, patience = "", monotonic() + _PATIENCE_SECONDS
    while monotonic() < until:
        holder = lock_owner(root)
        if holder is None or holder.pid not in (pid, None):
            return pid
        doing = activities(root) if monotonic() > patience else ()
        names = " ".join(f"{one.batch}/{one.hook}" for one in doing)
        if doing and names != waits_for:
            waits_for = names
            say(activity_text(doing, batches=True))
        sleep(_PAUSE_SECONDS)
    doing_now = activity_text(activities(root), batches=True)
    raise Busy(
        f"process {pid} still works after {_WAIT_SECONDS:.0f} s{doing_now and f': {doing_now}'}",
        "it ends when that is done; `patchq stop --now` leaves the change to the next start",
    )


def _ask(owner: Owner, *, now: bool) -> int:
    if owner.pid is None or owner.host != socket.gethostname():
        raise UsageError(
            f"the queue is served by process {owner.pid} on {owner.host}", "run the command there"
        )
    try:
        with suppress(ProcessLookupError):  # it stopped by itself
            os.kill(owner.pid, STOP_NOW if now else signal.SIGTERM)
    except PermissionError:
        raise UsageError(
            f"process {owner.pid} belongs to another user", "run the command as that user"
        ) from None
    return owner.pid
