"""Checking the queue against the repository, and rebuilding what one of them still tells of the
other.

Every kind of damage is found by looking, whatever may have caused it, and knows how it is mended,
if it can be.  A response is never deleted: one without a verdict goes back to the inbox.  Nothing
is made up: what neither report nor git knows stays damage, with what a person can do.
"""

from __future__ import annotations

from msgspec.structs import replace

from patchq.gate.errors import Fault
from patchq.gate.pipeline.session import Session
from patchq.gate.queue import spool
from patchq.gate.queue.archive import UNREAD
from patchq.gate.queue.engine import store_queue
from patchq.gate.service.fsck import batches
from patchq.gate.service.fsck.entries import Damage, check_refs, check_scraps, check_shapes, lock

_ROUNDS = 5
"""What is mended may show more: a report that was rebuilt has a note."""
_FIRST = ("mark.missing",)
"""What other damage is mended by."""


def check(session: Session) -> list[Damage]:
    """All damage that can be seen now: what cannot be read hides the rest."""
    if unreadable := [*check_shapes(session.queue_root)] or [*check_refs(session)]:
        return unreadable
    there = batches.read(session)
    return [*batches.check(session, there), *check_scraps(session, there.root)]


def enter_history(session: Session) -> None:
    """Enter the batches that git alone tells of into a store that was just made."""
    queue = store_queue(session.queue)
    batches.enter_history(session, queue)
    queue.remember(UNREAD, "")


def repair(session: Session) -> list[Damage]:
    """Mend what can be mended; what is left.  The queue's lock is taken, and kept."""
    for damage in lock(session.queue_root):
        if damage.mend:
            damage.mend()
    session.queue.acquire()
    damages = check(session)
    failed: dict[Damage, Damage] = {}
    for _ in range(_ROUNDS):
        mends = [damage for damage in damages if damage.mend and damage not in failed]
        if not mends:
            break
        for damage in [damage for damage in mends if damage.kind in _FIRST] or mends:
            try:
                if damage.mend:
                    damage.mend()
            except (Fault, OSError) as error:
                fault = error if isinstance(error, Fault) else spool.fault(error)
                why = "; ".join(filter(None, (fault.message, fault.hint)))
                failed[damage] = replace(damage, cure=f"not mended: {why}", mend=None)
        session.queue.sync()
        damages = check(session)
    return [failed.get(damage, damage) for damage in damages]
