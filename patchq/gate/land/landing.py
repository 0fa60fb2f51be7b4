"""Landing: verdicts come true, many at once, each by one compare-and-swap of one ref.

The order is what makes a crash harmless, and two flushes pay for a whole group:

    write every intended report into the store, every ref's value beside its ref | flush |
    move the refs | flush | `publish` every report

The intended report is there before any ref moves, so whoever recovers the claim knows which commit
to look for; no report appears before what it speaks of is durable.

A claim that a dead owner left has its intended verdict.  What counts is whether the ref of that
moved: a batch is never applied twice and never forgotten, whatever a person did to the branch
meanwhile.  On a remote the push of its commit may be on its way still, so whoever recovers the
claim pushes the very same commit again, in whatever clone (`bundles`): of the two pushes one is
taken, and then either the verdict is true, or its branch has moved without it, and neither can land
any more.  Only what cannot is decided anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from patchq.core.formats.envelope.front_matter import header_of
from patchq.core.model.values import Header
from patchq.gate.errors import Busy, CannotFollow, Declined, Fault, ObjectDamaged, Unreachable
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove, Moved, bundles
from patchq.gate.git.refs import heads
from patchq.gate.git.repository import Repository
from patchq.gate.land import reports
from patchq.gate.pipeline import history
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session, Tips
from patchq.gate.queue import Claim, Parcel
from patchq.gate.queue.shelf import Troubles
from patchq.gate.report.schema import COMMITTED, REPLACING, CommittedReport, Report, has_commit

_LOG = logging.getLogger("patchq")


# Called with each report once it is there; a batch that goes on waiting is not reported again.
Tell = Callable[[Report], None]


# Verdicts that are true now and wait for `publish`, and batches to decide again since their branch,
# their work tree or a batch before them changed meanwhile.
Outcome = tuple[list[Decision], list[Decision]]


def land(decisions: Sequence[Decision], session: Session) -> Outcome:
    """Make verdicts true, in order; return those that are, and those to decide again."""
    if not decisions:
        return [], []
    with session.queue.together():
        left = [decision for decision in decisions if _intended(decision, session)]
    if len(left) < len(decisions):
        return [], left
    rows = _rows(decisions)
    with refs.staged(session.repo, [row[-1].commit for row in rows]):
        flush(session)
        moved = session.branches.land([_move(row, session) for row in rows]) if rows else []
        lost = {
            decision.id: (row, one)
            for row, one in zip(rows, moved, strict=True)
            if not one.made
            for decision in row
        }
        done, again = _split_by_outcome(decisions, lost, session)
        if rows:
            _mark(done, session)
            flush(session)
    return done, again


def _intended(decision: Decision, session: Session) -> bool:
    if decision.state == "held":
        return True
    parcel: Parcel | None = None
    if decision.commit and session.branches.remote:  # clones lack it before the push arrives
        parcel = partial(bundles.pack, session.repo, decision.commit)
    try:
        session.queue.intend(decision.claim, decision.report, parcel)
    except Busy as busy:
        _LOG.warning("%s", busy.message, extra={"batch": decision.id})
        return False
    return True


def _split_by_outcome(
    decisions: Sequence[Decision], not_made: Mapping[str, tuple[_Row, Moved]], session: Session
) -> Outcome:
    """Return the verdicts that are true now, and the batches to decide again.

    A batch without a commit is decided again if a change before it on its branch was not made.
    Where several were to move together and could not, each is decided again, to find the one at
    fault.  What was moved is true, whatever became of those before it.
    """
    done, again = list[Decision](), list[Decision]()
    lost = set[str]()
    for decision in decisions:
        row, moved = not_made.get(decision.id, (None, None))
        if row is None or moved is None:
            if not decision.commit and decision.tip and decision.target in lost:
                again.append(decision)
            else:
                done.append(decision)
            continue
        lost.add(decision.target)
        fault = moved.fault
        if commit := moved.landed.get(decision.commit):  # by another process that had it in hand
            tree = session.repo.tree(commit).root
            done.append(replace(decision, commit=commit, tree=tree))
        elif isinstance(fault, ObjectDamaged | CannotFollow) and len(row) == 1:
            done.append(decision.damaged(fault))
        elif isinstance(fault, Declined):
            done.append(decision.declined(fault))
        elif isinstance(fault, Busy) and not session.stop.is_set:
            # Another process holds the branch's lock: the batch waits, and is decided again.
            done.append(_waiting(decision, fault))
        else:
            again.append(decision)
    return done, again


def _waiting(decision: Decision, fault: Busy) -> Decision:
    more = f" ({fault.hint})" if fault.hint else ""
    until = "that is mended" if isinstance(fault, Unreachable) else "that lock is gone"
    hint = f"nothing to send: the change lands by itself once {until}{more}"
    return decision.held(fault.message, hint)


# A claim with the report that ends or holds it, and the header of its response.
Verdict = tuple[Claim, Report, Header]


def publish(verdicts: Sequence[Verdict], session: Session, tell: Tell) -> int:
    """Publish verdicts that are true; return how many of the claims ended.

    Each published one goes to `tell`, also where the rest cannot be published: its claim is not
    recovered.
    """
    queue = session.queue
    for _, report, header in verdicts:
        if report.state in REPLACING:
            reports.supersede(report.id, header, session)
    try:
        with queue.together():
            for claim, report, _ in verdicts:
                (queue.hold if report.state == "held" else queue.publish)(claim, report)
    except Fault:
        _say([one for one in verdicts if _is_published(one[1], session)], session, tell)
        raise
    _say(verdicts, session, tell)
    return sum(report.state != "held" for _, report, _ in verdicts)


def _is_published(report: Report, session: Session) -> bool:
    with suppress(Fault):
        return session.queue.load(report.id) == report
    return False


def _say(verdicts: Sequence[Verdict], session: Session, tell: Tell) -> None:
    for claim, report, _ in verdicts:
        if report.state != "held" or not claim.held:
            tell(report)
            session.tell(report)
        if report.state == "rejected" and session.desk:
            session.desk.refused(report, session)


def hold_on(decision: Decision, session: Session) -> None:
    known = session.queue.load(decision.id)
    if known is None or known.problems != decision.report.problems:
        session.queue.hold(decision.claim, decision.report)


# Verdicts whose commits move one branch, one upon the other.
_Row = list[Decision]


def _rows(decisions: Sequence[Decision]) -> list[_Row]:
    """Return the verdicts with commits, those together that move one branch in a row.

    It does not matter what is proposed in between.
    """
    rows: list[_Row] = []
    newest: dict[str, _Row] = {}
    for decision in decisions:
        if not decision.commit:
            continue
        row = newest.get(decision.target)
        if decision.state == "proposed":
            rows.append([decision])
        elif row and row[-1].commit == decision.tip:
            row.append(decision)
        else:
            newest[decision.target] = [decision]
            rows.append(newest[decision.target])
    return rows


def _move(row: _Row, session: Session) -> BranchMove:
    first, last, who = row[0], row[-1], session.identity()
    if first.state == "proposed":
        branch = records.branch(first.id)
        return BranchMove(branch, None, first.commit, first.log, who, behind=first.target)
    return BranchMove(
        first.target,
        first.tip,
        last.commit,
        last.log,
        who,
        through=[(one.commit, one.log) for one in row[:-1]],
        touched={path for one in row for path in one.paths},
        # A batch that waited for a lock already looks again soon, so it need not wait.
        cut=lambda: first.claim.held or session.stop.is_set,
        backup=session.config.worktree.backup,
    )


def _mark(done: Sequence[Decision], session: Session) -> None:
    for decision in done:
        if decision.state == "proposed" and decision.commit:
            mark, who = records.WAITING + decision.id, session.identity()
            refs.move(session.repo, mark, None, decision.commit, decision.log, who)


def move_target(session: Session, move: BranchMove, along: Sequence[BranchMove]) -> bool:
    """Move a branch; on a remote, `along` is made with it, or none is.

    False when the branch, or a work tree on it, is not as it was.  Raises what else is wrong.
    """
    moved, *_ = session.branches.land([move, *along] if session.branches.remote else [move])
    if moved.fault is not None:
        raise moved.fault
    return moved.made or bool(moved.landed)


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


def landed_since(claims: Iterable[Claim], session: Session, tell: Tell) -> set[str]:
    """Give those claims their verdict that landed since they were recovered; return their tokens.

    A push of their former owner may arrive late.  Decided then, they would look as if others had
    made their changes.
    """
    recovered = [claim for claim in claims if claim.intended and session.branches.remote]
    left = {claim.token for claim in _publish_landed(recovered, session, tell)}
    return {claim.token for claim in recovered} - left


def _publish_landed(claims: Sequence[Claim], session: Session, tell: Tell) -> list[Claim]:
    """Publish the verdicts of claims whose ref has moved; return the other claims.

    A claim of which this cannot be known is neither published nor returned.
    """
    landed = list[Verdict]()
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
            header = replace(header_of(claim.data), retries=report.retry.of)
            landed.append((claim, _recorded(report, commit, session), header))
        else:
            rest.append(claim)
    if landed:
        flush(session)
    for verdict in landed:
        publish([verdict], session, tell)
    return rest


def _unpack(claims: Sequence[Claim], session: Session) -> None:
    """Make the commits that others intended in their clones, to push them again.  One on
    top of what is not on the remote any more cannot land, so it is not missed."""
    for claim in claims:
        commit = claim.intended.commit if claim.intended else None
        if claim.parcel and not session.repo.resolve_commit(commit or ""):
            bundles.unpack(session.repo, claim.parcel)
    flush(session)


def _push_again(claims: Sequence[Claim], session: Session) -> None:
    """Push again what was to land when a process died.

    This is done only where the remote is as it was then: the first push may be under way still, and
    only one of the two can be taken.
    """
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
    below = report.stands_on
    tip = tips.of(records.branch(below.batch) if below else report.target)
    (parent, *_) = session.repo.parents(report.commit)
    if tip is None or below:
        return tip == parent
    return session.repo.is_ancestor(parent, tip)


def _doubt(report: Report | None, damage: ObjectDamaged, session: Session) -> None:
    id, troubles = report.id if report else "", Troubles(session.queue_root)
    message = f"whether change {id} landed before a crash is unknown: {damage.message}"
    _LOG.warning("%s", message, extra={"batch": id})
    troubles.note(f"claim.{id}", message, f"{damage.hint}; it gets its verdict by itself then")


def _recorded(intended: Report, commit: str, session: Session) -> Report:
    """Return the report with its landed commit, and mark a proposal as waiting."""
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
    there = found or waits or _was_on_a_branch(repo, commit, (report.target, own))
    return commit if there else None


def _was_on_a_branch(repo: Repository, commit: str, names: Sequence[str]) -> bool:
    """Return True if a branch holds the commit, or held it once.

    Reflogs are those of HEADs, and of the branches with these names.
    """
    tips = repo.refs("refs/heads/") | repo.refs("refs/remotes/")
    for name, tip in tips.items():
        with suppress(ObjectDamaged):
            if not name.startswith(records.BRANCHES) and repo.is_ancestor(commit, tip):
                return True
    logs = [(repo.commondir / "logs/refs/heads" / name, repo.branch_tip(name)) for name in names]
    for gitdir, ref in heads(repo.commondir):
        logs.append((gitdir / "logs/HEAD", repo.ref_target(ref) if ref else None))
    found = [(log.read_bytes(), value) for log, value in logs if value and log.is_file()]
    return any(_was_at(text, value, commit) for text, value in found)


def _was_at(text: bytes, value: str, commit: str) -> bool:
    """Return True if a reflog shows that its ref left the commit.

    `value` is the commit (hex) of the ref now.  Lines are written before the ref moves, and several
    for a group of batches.  So one proves something by its old value only, and if all behind it
    lead from there to where the ref is.
    """
    for line in reversed(text.decode("utf-8", "replace").splitlines()):
        old, new = line[:40], line[41:81]
        if new != value:
            return False
        if old == commit:
            return True
        value = old
    return False
