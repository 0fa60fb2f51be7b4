"""The response that a proposal was made of, and the choice by which it was taken."""

from __future__ import annotations

from patchq.core.model.values import Base, Source
from patchq.gate.errors import Fault, UsageError
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.queue import Claim
from patchq.gate.report.schema import IDLE, CommittedReport, Report


def choice_of(report: CommittedReport) -> Choice:
    """Return the choice by which a batch was taken: its base, and the edits not left out.

    Raises `UsageError` if the report has no room for all of them, and so does not say.
    """
    idle = [edit for edit in report.edits if edit.state in IDLE]
    if idle and (report.edits[-1].description or "").endswith("edits are left out here)"):
        raise UsageError(
            f"change {report.id} has more edits than its report holds, and some were not taken",
            "send the wanted ones in a new response",
        )
    wanted = frozenset(edit.id for edit in report.edits if edit not in idle) if idle else None
    # A backup has the id of the edit that it can replace.
    left = {edit.id: edit.cancelled_by for edit in idle if edit.id not in (wanted or ())}
    base = report.base
    return Choice(
        edits=wanted,
        left=left,
        base=Base(base.commit, base.how or "tip"),
        target=report.target,
        in_stack=report.stands_on is not None,
    )


def claim_of(report: Report, session: Session) -> Claim:
    """The response of a batch, to be decided on again; `Fault` if the queue has lost it."""
    source, body = report.source, session.queue.body(report.id)
    if body is None:
        raise Fault(
            f"the response of {report.id} is gone from the queue",
            "restore `.patchq/` from a backup, or discard the change",
        )
    return Claim(
        "",
        Source(source.name or "", source.sha256, source.bytes or 0),
        body,
        id=report.id,
    )
