"""Threads of comments, and decisions that are taken back.

A person resolves a thread, or replies, which opens it again.  Taking back undoes the last decision
on a change as long as nothing followed from it: an acceptance that waits for its train, a request
for changes that no answer has come to, a discarded proposal.
"""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from patchq.core.text.quote import clip
from patchq.gate.errors import UsageError
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import reports
from patchq.gate.pipeline import notes
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document, secrecy
from patchq.gate.report.schema import (
    CommentEntry,
    CommittedReport,
    ReplyEntry,
    Report,
    ReviewEntry,
    ReviewState,
    ThreadState,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import boarding, decide, restack, send_back
from patchq.gate.review.decide import Decided


def discuss(
    session: Session, id: str, comment: str, text: str, by: str, *, resolves: bool
) -> Decided:
    """Resolve the thread of a comment, or reply to it, which opens it again."""
    if len(text) > send_back.MAX_TEXT:
        raise UsageError(
            f"the reply is longer than {send_back.MAX_TEXT} characters", "say it in fewer words"
        )
    if secrecy.in_text(text, ""):
        raise UsageError("the reply holds a secret, which is not passed on", "say it without")
    if not (resolves or text.strip()):
        raise UsageError("the reply is empty", "write what you want to say")
    decide.refresh(session)

    def change(now: CommittedReport) -> ReviewEntry:
        at = document.now()
        review = now.review
        if review is None or all(one.id != comment for one in review.comments):
            raise UsageError(f"{id} has no comment {clip(comment, 20)}", f"see `patchq show {id}`")
        reply = ReplyEntry(by=by, at=at, text=text.strip(), commit=now.commit)

        def discussed(one: CommentEntry) -> CommentEntry:
            # A worker that died before its answer carries the same out once more.
            is_there = any((last.by, last.text) == (by, reply.text) for last in one.replies[-1:])
            more = (reply,) if reply.text and not is_there else ()
            state: ThreadState = "resolved" if resolves else "open"
            return replace(one, state=state, replies=(*one.replies, *more))

        comments = [discussed(one) if one.id == comment else one for one in review.comments]
        return replace(review, comments=comments)

    return Decided(send_back.rewrite(session, id, change))


def can_take_back(report: Report) -> bool:
    """Return True if the last decision on a change can be taken back."""
    discarded = report.state == "discarded" and has_commit(report)
    return discarded or bool(report.boarded) or waits_for_its_agent(report)


def take_back(session: Session, id: str) -> Decided:
    """Take the last decision on a change back; `UsageError` where nothing can be taken back."""
    decide.refresh(session)
    report = session.queue.load(id)
    if report is not None and report.state == "discarded" and has_commit(report):
        return Decided(_propose_again(session, report))
    if report is not None and waits_for_its_agent(report):
        return Decided(send_back.rewrite(session, id, _not_asked))
    return boarding.take_back(session, id)


def _not_asked(now: CommittedReport) -> ReviewEntry | None:
    """Return the review without the comments of the last request for changes."""
    review = now.review
    if review is None:
        return None
    received = now.received.unix if now.received else 0.0
    earlier = [one for one in review.comments if one.at.unix <= received]  # on the round before
    own = [one for one in review.comments if one not in earlier and one.at.iso != review.at.iso]
    state: ReviewState = "changes_requested" if own else "answered"
    return replace(review, comments=[*earlier, *own], state=state)


def _propose_again(session: Session, report: CommittedReport) -> Report:
    """Return a discarded proposal to its branch, and have it follow its target."""
    id, repo = report.id, session.repo
    mark, branch = records.DISCARDED + id, records.branch(id)
    tip, log = repo.ref_target(mark), f"patchq: {id}: proposed again"
    if tip is None or not repo.exists(tip):
        raise UsageError(f"the commits of {id} are not there any more", f"try `patchq retry {id}`")
    with reports.locked(session), ExitStack() as stack:
        staged = refs.stage(repo, tip)
        stack.callback(staged.drop)
        move = BranchMove(branch, None, staged, log, session.identity())
        (moved,) = session.branches.land([move])
        if moved.fault is not None:
            raise moved.fault
        updated = document.with_state(report, "proposed", branch=branch)
        reports.put(session, updated)
        session.queue.sync()
        refs.move(repo, records.WAITING + id, None, report.commit, log, session.identity())
        notes.add(session, updated)
        refs.delete(repo, mark, tip)
    restack.follow(session, [id])
    return session.queue.load(id) or updated
