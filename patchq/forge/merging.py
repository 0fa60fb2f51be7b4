"""Landing by the forge's own merge, where it lets nobody push to the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from patchq.forge.contract import Project, PullRequest
from patchq.gate.errors import Fault
from patchq.gate.land import reports
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import CommittedReport
from patchq.gate.review.accept import Train
from patchq.gate.review.candidates import Member


@dataclass
class _Checked(Train):
    """A train that stops where it would land; `members` passed the checks."""

    members: list[Member] = field(default_factory=list)

    def land(self, members: Sequence[Member]) -> bool:
        self.members += members
        return True


def merged(session: Session, forge: Project, report: CommittedReport, request: PullRequest) -> str:
    """Check what was accepted, and have the forge merge it; return what differs from that."""
    train = _Checked(session, report.target, lambda *_: None)
    if chain := train.join([report]):
        train.clear(chain, alone=True)
    if not train.members:
        raise Fault(train.done[report.id].problems[0].message)
    candidate = train.members[0].decision
    flush(session)
    message = session.repo.message(candidate.commit)
    commit = forge.merge(request.number, request.head, message)
    session.branches.refresh()
    reports.reconcile(session, [report.id])
    if session.repo.tree(commit).root == candidate.tree:
        return ""
    return (
        f"the forge merged #{request.number} as {commit}, which is not what was checked: see "
        f"git diff {candidate.commit} {commit}"
    )
