"""Claims that a dead owner left, with the verdict that it intended: did that come true?

What counts is whether the ref of the verdict moved.  A batch is never applied twice and never
forgotten, whatever a person did to the branch meanwhile: what git remembers of the intended commit
decides.

On a remote the push of that commit may be on its way still, and arrive when it is not expected
any more.  So it is pushed again, the very same commit, by whoever recovers the claim, in whatever
clone (`bundles`): of the two pushes one is taken, and then either the verdict is true, or its
branch has moved without it, and neither can land any more.  Only what cannot is decided anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope
from patchq.gate.errors import ObjectDamaged, Unreachable
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove, bundles
from patchq.gate.git.ref_files import heads
from patchq.gate.git.repository import Repository
from patchq.gate.land import reports
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.session import Session, Tips
from patchq.gate.queue import Claim
from patchq.gate.queue.shelf import Troubles
from patchq.gate.report import page
from patchq.gate.report.schema import COMMITTED, CommittedReport, Report, has_commit

_LOG = logging.getLogger("patchq")
# Called with each report once it is there; a batch that goes on waiting is not reported again.
Tell = Callable[[Report], None]


def finish(claims: Sequence[Claim], session: Session, tell: Tell) -> list[Claim]:
    """Publish the intended verdict of each recovered claim whose ref has moved; the other claims,
    which are to be decided anew.

    What may have been pushed to a remote is asked of that, and pushed again where no answer ever
    came; `errors.InDoubt` or `errors.Unreachable` while that cannot be.
    """
    if any(claim.intended and claim.intended.state in COMMITTED for claim in claims):
        session.branches.refresh()
        _unpack(claims, session)
        _push_again(claims, session)
    return _publish_landed(claims, session, tell)


def without_landed(
    claims: Sequence[Claim], session: Session, tell: Tell
) -> tuple[list[Claim], int]:
    """The claims without those recovered ones that have landed since `finish` asked, by a push of
    their former owner, and how many these are; they get their verdict.  Decided now,
    one would look as if others had made its changes."""
    recovered = [claim for claim in claims if claim.intended and session.branches.remote]
    left = {claim.token for claim in _publish_landed(recovered, session, tell)}
    gone = {claim.token for claim in recovered} - left
    return [claim for claim in claims if claim.token not in gone], len(gone)


def _publish_landed(claims: Sequence[Claim], session: Session, tell: Tell) -> list[Claim]:
    """Publish the intended verdict of each claim whose ref has moved, as far as is known; the
    others, without those of which it is not known."""
    landed: list[tuple[Claim, Report]] = []
    rest: list[Claim] = []
    for claim in claims:
        report = claim.intended
        try:
            commit = _moved_to(report, session) if report else None
        except ObjectDamaged as damage:  # whether it landed is unknown: the next start asks
            _doubt(report, damage, session)
            continue
        if report:
            Troubles(session.queue_root).over(f"claim.{report.id}")
        if report and commit:
            landed.append((claim, _recorded(report, commit, session)))
        else:
            rest.append(claim)
    if landed:
        flush(session)
    for claim, report in landed:
        opened = open_response(claim.data)
        if isinstance(opened, Envelope):
            reports.supersede(report.id, replace(opened.header, retries=report.retry.of), session)
        session.queue.publish(claim, report, page.to_markdown(report))
        tell(report)
        session.tell(report)
    return rest


def _unpack(claims: Sequence[Claim], session: Session) -> None:
    """Make the commits that others intended in their clones, to push them again.  One on
    top of what is not on the remote any more cannot land, so it is not missed."""
    some = False
    for claim in claims:
        report = claim.intended
        if claim.parcel and report and not session.repo.resolve_commit(report.commit or ""):
            some |= bundles.unpack(session.repo, claim.parcel) is not None
    if some:
        flush(session)


def _push_again(claims: Sequence[Claim], session: Session) -> None:
    """Push what was to land when a process died, where the remote is as it was then: that push may
    be under way still, and only one of the two can be taken."""
    if session.branches.remote is None:
        return
    tips, moves = Tips(session), list[BranchMove]()
    for report in (claim.intended for claim in claims):
        if report is None or report.state not in COMMITTED or not has_commit(report):
            continue
        commit, target = report.commit, report.target
        if not session.repo.resolve_commit(commit) or not session.repo.exists(commit):
            continue  # it was never written, so it was never pushed
        branch, old = records.branch(report.id), None
        if report.state == "applied":
            branch, (old, *_) = target, session.repo.parents(commit)
        if tips.of(branch) == old and _is_rooted(report, session, tips):
            log = f"patchq: {report.id}: recovered"
            moves.append(BranchMove(branch, old, commit, log, session.identity()))
            tips.move(branch, commit)
    for moved in session.branches.land(moves) if moves else ():
        if isinstance(moved.fault, Unreachable):
            raise moved.fault


def _is_rooted(report: CommittedReport, session: Session, tips: Tips) -> bool:
    """Return True if the parent of the intended commit is, or will be, where the batch says.

    That is its target, or the proposal that it is built on.
    """
    below = report.stands_on
    tip = tips.of(records.branch(below.batch) if below else report.target)
    (parent, *_) = session.repo.parents(report.commit)
    if tip is None or below:
        return tip == parent
    return session.repo.is_ancestor(parent, tip)


def _doubt(report: Report | None, damage: ObjectDamaged, session: Session) -> None:
    """Say once that a verdict waits for what git cannot read."""
    id, troubles = report.id if report else "", Troubles(session.queue_root)
    message = f"whether change {id} landed before a crash is unknown: {damage.message}"
    if message not in (trouble.message for trouble in troubles.all()):
        _LOG.warning("%s", message, extra={"batch": id})
        cure = f"{damage.hint}; it gets its verdict by itself then"
        troubles.note(f"claim.{id}", message, cure)


def _recorded(intended: Report, commit: str, session: Session) -> Report:
    """The report as it is now, with the mark made that follows the branch of a proposal."""
    if not session.repo.resolve_commit(commit):  # a person removed it, and git collected it
        return replace(intended, commit=commit)
    if intended.state == "proposed":
        log, mark = f"patchq: {intended.id}: recovered", records.WAITING + intended.id
        refs.move(session.repo, mark, None, commit, log, session.identity())
    return replace(intended, commit=commit, tree=session.repo.tree(commit).root)


def _moved_to(report: Report, session: Session) -> str | None:
    """Return the commit as which an intended verdict landed or was proposed; else None.

    The commit is known to the daemon alone until a ref has it; so a ref moved if anything at all
    shows that one had it, and did not if nothing does.
    """
    if report.state not in COMMITTED or not has_commit(report):
        return None
    commit, own = report.commit, records.branch(report.id)
    proposed, repo = report.state == "proposed", session.repo
    tip = session.branches.tip(report.target)
    branch = session.branches.tip(own) if proposed else None
    if branch and repo.is_ancestor(commit, branch):
        return commit
    found = history.landing(report, repo, tip) if tip else None
    if found and not proposed:
        return found  # rebased or amended, perhaps
    waits = proposed and repo.ref_target(records.WAITING + report.id) == commit
    return commit if found or waits or _in_a_reflog(repo, own, commit) else None


def _in_a_reflog(repo: Repository, own: str, commit: str) -> bool:
    """Return True if a ref was moved away from the commit, or a renamed one still has it."""
    for log, value in _reflogs(repo, own):
        text = log.read_bytes()
        if commit.encode() not in text:
            continue
        if value and (_was_at(text, value, commit) or repo.is_ancestor(commit, value)):
            return True
    return False


def _was_at(text: bytes, value: str, commit: str) -> bool:
    """Return True if a reflog shows that its ref, now at `value`, left the commit.

    Lines are written before the ref moves, and several for a group of batches.  So one proves
    something by its old value only, and if all behind it lead from there to where the ref is.
    """
    for line in reversed(text.decode("utf-8", "replace").splitlines()):
        old, new = line[:40], line[41:81]
        if new != value:
            return False
        if old == commit:
            return True
        value = old
    return False


def _reflogs(repo: Repository, own: str) -> Iterator[tuple[Path, str | None]]:
    """Yield log and value of each work tree's HEAD and of all refs, of proposals only `own`."""
    for gitdir, ref in heads(repo.commondir):
        if (log := gitdir / "logs/HEAD").is_file():
            yield log, repo.ref_target(ref) if ref else (gitdir / "HEAD").read_text().strip()
    logs = repo.commondir / "logs"
    for where, folders, names in os.walk(logs / "refs"):
        if Path(where) == logs / "refs/heads":
            folders[:] = [name for name in folders if name != "patchq"]
        for log in (Path(where, name) for name in names):
            yield log, repo.ref_target(str(log.relative_to(logs)))
    if (log := logs / "refs/heads" / own).is_file():
        yield log, repo.branch_tip(own)
