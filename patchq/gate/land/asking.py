"""Which branches of a shared remote are asked for before responses are decided on.

Most speak of their own target alone.  Where several processes serve a branch each, to ask for the
others as well would be to fetch what these land, and all of it once for each process.  So only what
names something else (a base that is not here, batches that may be anywhere) has all of them asked
for: what is known of a branch that was not asked for may be as old as this process.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, Header
from patchq.gate.pipeline.session import Choice, Session, recorded
from patchq.gate.pipeline.stages import lane_named
from patchq.gate.queue import Claim

_ID = re.compile(r"[0-9a-fA-F]{40}")


def learn(claims: Iterable[Claim], session: Session, choice: Choice | None = None) -> None:
    """Know the branches on which the verdicts depend as they are now; `errors.Unreachable`."""
    session.branches.refresh(_lanes(claims, session, choice))


def _lanes(
    claims: Iterable[Claim], session: Session, choice: Choice | None
) -> Collection[str] | None:
    """Their names; None for all."""
    found = set[str]()
    for claim in claims if session.serves else ():
        opened, chosen = open_response(claim.data), choice or recorded(claim)
        header = opened.header if isinstance(opened, Envelope) else Header()
        if claim.request or header.depends_on or header.retries or not _has_base(header, session):
            return None
        found.add(lane_named(header, session.target, session.config.targets))
        found |= {name for name in (chosen and chosen.target, _intended(claim)) if name}
    return found or None


def _has_base(header: Header, session: Session) -> bool:
    """Return True if the base is a commit that is here, whatever branches and tags are called."""
    base = header.base
    return base is None or bool(_ID.fullmatch(base) and session.repo.resolve_commit(base))


def _intended(claim: Claim) -> str | None:
    return claim.intended.target if claim.intended else None
