"""Opening everything that deciding on responses takes."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress

from patchq.cli import places
from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.pipeline.session import Session, compose
from patchq.gate.queue.archive import UNREAD
from patchq.gate.queue.engine import store_queue


def open_session(args: Namespace, *, targeted: bool = True, writes: bool = True) -> Session:
    """The session that the command works in, on what `places.open_context` finds; the end of the
    command closes it."""
    session = compose(places.open_context(args, targeted=targeted, writes=writes))
    if writes and store_queue(session.queue).recall(UNREAD):
        from patchq.gate.service import fsck  # only a new store needs it

        with suppress(ObjectDamaged):  # that is met, and told of, when a batch is decided
            fsck.enter_history(session)
    args.opened.callback(_close, session)
    return session


def _close(session: Session) -> None:
    """Wait for the hooks that are being told, keep what they said, and let go of everything."""
    try:
        with suppress(Fault):  # the work is done, and was said
            if session.hooks.told:
                from patchq.gate.land import reports

                session.notifier().close()
                reports.keep_told(session, sys.maxsize)
    finally:
        session.close()
