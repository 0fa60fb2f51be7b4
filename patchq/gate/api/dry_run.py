"""The verdict that a response would get; nothing is written."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import PurePath

from msgspec.structs import replace

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, Source
from patchq.gate.api.submitting import oversize
from patchq.gate.errors import Unreachable
from patchq.gate.land.overlaps import foreseen
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import AS_SENT, Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.report.schema import Report
from patchq.gate.report.secrecy import batch_id


def foresee(session: Session, data: bytes, name: str, *, corrects: bool) -> Report:
    """Return the report that a response would get now, with what waits and collides with it."""
    if not corrects:
        llm = replace(session.config.llm, correct=False)
        session = replace(session, config=replace(session.config, llm=llm))
    with suppress(Unreachable):  # then it would be held for that
        session.branches.refresh(within=session.config.landing.poll_seconds)
    decision = preview(session, unread(session, data, name))
    return foreseen.foreseen(decision, session).report()


def preview(session: Session, claim: Claim, choice: Choice | None = None) -> Decision:
    """Return the verdict that a response would get now; nothing is written, and no id is taken."""
    opened = open_response(claim.data)
    named = opened.header.id if isinstance(opened, Envelope) else None
    id = claim.id or batch_id(named or PurePath(claim.source.name).stem)
    if claim.id is None and isinstance(session.queue, StoreQueue):
        id = session.queue.next_id(id)
    dry = replace(choice or AS_SENT, dry_run=True)
    return process(replace(claim, id=id), session, Tips(session), dry)


def unread(session: Session, data: bytes, name: str) -> Claim:
    """A response that the queue does not have, to look at."""
    source = Source(name, sha256(data).hexdigest(), len(data))
    return Claim("", source, data, oversize(session, data))
