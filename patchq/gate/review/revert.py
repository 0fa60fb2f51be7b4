"""`revert`: a batch that takes another one back, through the same gate as every batch.

Git alone knows what to take back, so the queue may have lost the batch.  Whether it still can be
taken back is found out first; a revert that cannot leaves nothing behind, as with git.

Its response is a unified diff from what the commit made to what was there.  It names the commit as
its base, so that it is resolved on exactly those bytes and carried to the tip by the rule that
holds for every batch.  What no response can say (submodules) is refused.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.names import batch_id
from patchq.core.model.values import Problem, Source
from patchq.gate.errors import CannotFollow, UsageError
from patchq.gate.intake import commits
from patchq.gate.land import reports, worker
from patchq.gate.pipeline import history, notes
from patchq.gate.pipeline.process import process
from patchq.gate.pipeline.session import Choice, Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.report import document
from patchq.gate.report.message import subject
from patchq.gate.report.schema import LANDED, CommittedReport, Report, has_commit
from patchq.gate.review import from_git, restack
from patchq.gate.review.candidates import obstacles
from patchq.gate.review.decide import Decided, Discard

_MOST = 10**6


class Revert(Struct, frozen=True, tag_field="verb", tag="revert"):
    """Revert a change that landed.

    The outcome is that change as it is then, with the verdict on the one that takes it back, or
    why nothing was done.
    """

    id: str

    def carry_out(self, session: Session) -> Decided:
        report, commit = _landed(session, self.id)
        target = report.target
        gate = _for_what_was_there(session)
        data = _response(gate, self.id, target, commit)
        if isinstance(data, Problem):
            return Decided(report, (data,))
        name = f"{batch_id(f'revert-{self.id}')}.md"
        choice = Choice(target=target, accepted=True)
        claim = Claim("", Source(name, "", len(data)), data, id=batch_id(name[:-3]))
        decision = process(claim, gate, Tips(gate), replace(choice, dry_run=True))
        if problems := obstacles(decision, "revert again"):
            return Decided(report, problems)
        # Else it would land when it is not expected any more.
        session.signer.try_out(session.identity())
        verdicts: list[Report] = []
        worker.work([session.queue.adopt(data, name, choice)], gate, verdicts.append)
        now: Report = report
        for verdict in verdicts:  # none if a signal stops it
            if verdict.state == "held" and worker.waits_for_mending(verdict) == CannotFollow.code:
                # Else it would land when it is not expected any more.
                Discard(verdict.id).carry_out(session)
                why = verdict.problems[-1]
                hint = f"see to that, then `patchq revert {self.id}` again"
                return Decided(report, (Problem(CannotFollow.code, why.message, hint),))
            if verdict.state == "applied" and has_commit(verdict):
                now = _mark(session, report, verdict.id, verdict.commit)
                restack.settle(session)
        return Decided(now, verdicts=tuple(verdicts))


def _landed(session: Session, id: str) -> tuple[CommittedReport, str]:
    session.branches.refresh()
    report, _ = from_git.find(session, id)
    sighting = history.observe(session, report)
    if sighting.state not in LANDED or not has_commit(report):
        message = f"change {id} has not landed: it is {sighting.state}"
        raise UsageError(message, f"see `patchq show {id}`")
    if report.state != sighting.state:  # a person merged it by git, and it is not yet noted
        reports.reconcile(session, [id])
        updated = session.queue.load(id)
        report = updated if updated and has_commit(updated) else report
    return report, _on_target(session, replace(report, commit=sighting.commit or report.commit))


def _on_target(session: Session, report: CommittedReport) -> str:
    repo, id, target = session.repo, report.id, report.target
    tip = session.branches.tip(target)
    if tip is None:
        raise UsageError(f"the branch {target} is gone")
    commit = history.landing(report, repo, tip)
    if commit is None:
        message = f"change {id} is not in the history of {target} any more"
        raise UsageError(message, f"to have it again: patchq retry {id}")
    if undone := history.undone_by(repo, commit, tip):
        for by in history.trailers(repo, undone).get("Patchq-Batch", []):
            _mark(session, report, by, undone)  # a crash came in between
        message = f"change {id} was reverted already, by commit {undone[:12]}"
        raise UsageError(message, f"to have it again: patchq retry {id}")
    return commit


def _response(gate: Session, id: str, target: str, commit: str) -> bytes | Problem:
    start = history.start_of(gate.repo, id, commit)
    if start is None:
        return Problem(
            "conflict.base",
            f"commit {commit[:12]} holds more than change {id}",
            f"take it back with git: git revert {commit[:12]}",
        )
    title = subject(gate.repo.message(commit))
    message = f'Revert "{title}"\n\nThis reverts commit {commit}.\nIt landed as change {id}.'
    keys = {"target": target, "base": commit, "message": message}
    data = commits.diff_response(gate.repo, gate.rules, commit, start, keys)
    if isinstance(data, Problem):
        return replace(data, hint=f"take it back with git: git revert {commit[:12]}")
    return data


def _for_what_was_there(session: Session) -> Session:
    """Return the same gate without doubts about new text.

    All that comes back was there before.
    """
    config = session.config
    relaxed = {
        "validate_": replace(config.validate_, elision=False, syntax=False),
        "limits": replace(config.limits, files=_MOST, edits=_MOST),
        "paths": replace(config.paths, new_directories=True),
    }
    return replace(session, config=replace(config, **relaxed))


def _mark(session: Session, report: Report, by: str, commit: str) -> Report:
    reason = f"reverted by {by}, commit {commit}"
    if session.queue.load(report.id):
        return reports.rewrite(session, report, "reverted", reason, duplicate_of=by)
    updated = document.with_state(report, "reverted", duplicate_of=by, reason=reason or None)
    notes.add(session, updated, reason)
    return updated
