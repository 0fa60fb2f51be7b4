"""Commands on a batch as values, carried out here or by its branch's worker; comments among them.

One machine carries them out itself; in a cluster the worker does that serves the branch, and its
answer comes back.  Words and answers are JSON.  A command that is carried out again, since its
worker died before it answered, finds that it is done, and answers with the report as it is.

Comments say what is to be different, and are handed in as plain lines:

    src/a.py:12: say why          line 12 of the proposal's file
    src/a.py:-9: why did it go?   line 9 of the file before it
    edit 2: do it without         one edit, by its id
        a further line, since it is indented, or begins as none of these

Text before the first of them is on the change as a whole.  All that is wrong is reported at once.
A proposal that is sent back stays as it is, and waits for its agent instead of for a person.
Whoever decides at the same time is either before this or behind it: both write the report under
the same lock, and the comments of two people are both kept.

    report | flush | refs/notes/patchq

A crash between the two leaves a report whose note is missing, which `reports.reconcile` and `fsck`
write.  Each comment heads a thread: a person resolves it, or replies, which opens it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from patchq.core.model.names import REQUEST
from patchq.core.model.values import State
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import clip, visible
from patchq.gate.errors import Fault, InDoubt, UsageError
from patchq.gate.git import records, refs
from patchq.gate.git.branches import BranchMove
from patchq.gate.land import reports
from patchq.gate.pipeline import comments, notes
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document, secrecy
from patchq.gate.report.schema import (
    CommentEntry,
    CommittedReport,
    ReplyEntry,
    Report,
    ReviewEntry,
    ReviewState,
    has_commit,
    waits_for_its_agent,
)
from patchq.gate.review import decide, from_git, restack
from patchq.gate.review.accept import Accept
from patchq.gate.review.decide import Decided, Discard
from patchq.gate.review.revert import Revert

MAX_TEXT = 4000
# Bytes of JSON that all comments on one batch take at most: report and prompt hold them uncut.
MAX_REVIEW = 16 * 1024
_MOST_FLAWS = 10
_LINE = re.compile(
    r"(?:edit[ \t]+(?P<edit>[^\s:]+)|(?P<path>\S(?:.*?\S)?):(?P<old>-?)(?P<line>[0-9]{1,9}))"
    r":[ \t]*(?P<text>.*)"
)


# ---------------------------------------------------------------- reading


def read_comments(data: bytes) -> Iterator[CommentEntry]:
    """Yield the comments of plain lines."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    drafts: list[tuple[dict[str, Any], list[str]]] = [({}, [])]
    for line in text.split("\n"):
        match = None if line[:1].isspace() else _LINE.fullmatch(line)
        if match is None:
            drafts[-1][1].append(line)
            continue
        found: dict[str, Any] = {"edit": match["edit"]}
        if match["path"]:
            side, span = "base" if match["old"] else None, (int(match["line"]),) * 2
            found = {"path": match["path"], "lines": span, "side": side}
        drafts.append((found, [match["text"]]))
    for place, lines in drafts:
        words = "\n".join(lines).strip("\n").rstrip()
        if words or place:
            yield CommentEntry(text=words, **place)


# ---------------------------------------------------------------- deciding


class SendBack(Struct, frozen=True, omit_defaults=True, tag_field="verb", tag="send-back"):
    """Ask for changes of a proposal; `by` is who asks, by default the repository's identity.

    `seen` is the commit that was looked at, if it may have followed its target meanwhile.
    """

    id: str
    comments: tuple[CommentEntry, ...]
    by: str = ""
    seen: str | None = None

    def carry_out(self, session: Session) -> Decided:
        decide.refresh(session)
        id, report = self.id, decide.proposal(session, self.id)
        shown = self.seen or report.commit
        if not session.repo.exists(shown):
            message = f"the commit {shown[:12]} is not there any more"
            raise UsageError(message, f"see `patchq show {id}`")
        who = clip(visible(self.by or session.identity().name), 200)
        entries = _checked(session, report, self.comments, shown, who)
        updated = rewrite(session, id, lambda now: _asked(session, now, entries, shown, who))
        reports.unboard(session, id)
        llm = session.config.llm
        if llm.model and llm.auto_retry:
            from patchq.llm import request  # it takes all formats
            from patchq.llm.request import Request

            session.queue.submit(request.write(Request(retries=id)), id + REQUEST)
        return Decided(updated)


class Discuss(Struct, frozen=True, omit_defaults=True, tag_field="verb", tag="discuss"):
    """Resolve the thread of a comment, or reply to it.

    A reply opens it again; `by` is who does, by default the repository's identity.
    """

    id: str
    comment: str
    text: str = ""
    by: str = ""
    resolves: bool = False

    def carry_out(self, session: Session) -> Decided:
        if len(self.text) > MAX_TEXT:
            message = f"the reply is longer than {MAX_TEXT} characters"
            raise UsageError(message, "say it in fewer words")
        if secrecy.in_text(self.text, ""):
            raise UsageError("the reply holds a secret, which is not passed on", "say it without")
        if not (self.resolves or self.text.strip()):
            raise UsageError("the reply is empty", "write what you want to say")
        decide.refresh(session)
        by = self.by or session.identity().name
        return Decided(rewrite(session, self.id, lambda now: self._discussed(now, by)))

    def _discussed(self, now: CommittedReport, by: str) -> ReviewEntry:
        review, text = now.review, self.text.strip()
        of = [one for one in review.comments if one.id == self.comment] if review else []
        if review is None or not of:
            message = f"{self.id} has no comment {clip(self.comment, 20)}"
            raise UsageError(message, f"see `patchq show {self.id}`")
        replies, state = of[0].replies, "resolved" if self.resolves else "open"
        # A worker that died before its answer carries the same out once more.
        if text and (by, text) not in [(last.by, last.text) for last in replies[-1:]]:
            reply = ReplyEntry(by=by, at=document.now(), text=text, commit=now.commit)
            replies = (*replies, reply)
        made = replace(of[0], state=state, replies=replies)
        return replace(review, comments=[made if one is of[0] else one for one in review.comments])


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


def rewrite(
    session: Session, id: str, change: Callable[[CommittedReport], ReviewEntry | None]
) -> Report:
    """Change the review of a proposal as it is now, durably.

    `change` makes the new one.
    """
    with reports.locked(session):
        now = session.queue.load(id)
        if now is None or now.state != "proposed" or not has_commit(now):
            raise decide.decided_already(id, now.state if now else "gone")
        updated = comments.with_review(session.repo, now, _fitting(id, change(now)))
        reports.put(session, updated)
        session.queue.sync()
        notes.add(session, updated)
    return updated


def _fitting(id: str, review: ReviewEntry | None) -> ReviewEntry | None:
    if review is None:
        return None
    asked = [replace(one, replies=()) for one in review.comments]
    if len(document.printed(asked).encode()) > MAX_REVIEW:
        raise UsageError(
            f"the comments on {id} are longer than {MAX_REVIEW // 1024} KiB together",
            "say it in fewer words; nothing was sent",
        )
    return comments.bounded(review)


def _asked(
    session: Session, now: CommittedReport, entries: Sequence[CommentEntry], shown: str, who: str
) -> ReviewEntry:
    """Return the review with these comments behind those that are not resolved."""
    known = now.review.comments if now.review else []
    at = document.now()
    review = ReviewEntry(state="changes_requested", by=who, at=at, comments=entries)
    review = comments.carried(session.repo, review, shown, now.commit)
    asked = {_words(one) for one in known}
    last = max((int(one.id[1:]) for one in known), default=0)
    new = [one for one in review.comments if _words(one) not in asked]
    numbered = [replace(one, id=f"c{n}", at=at) for n, one in enumerate(new, last + 1)]
    before = now.review.unresolved if now.review else []
    return replace(review, comments=[*before, *numbered])


def _words(comment: CommentEntry) -> tuple[object, ...]:
    return comment.path, comment.lines, comment.side, comment.edit, comment.text, comment.by


# ---------------------------------------------------------------- checks


def _checked(
    session: Session, report: CommittedReport, drafts: Sequence[CommentEntry], shown: str, who: str
) -> list[CommentEntry]:
    review = report.review
    goes_along = review is not None and review.state == "answered" and review.unresolved
    if not drafts and not goes_along:
        raise UsageError("there is no comment", "say what is to be different: -m TEXT")
    flaws: list[str] = []
    made: list[CommentEntry] = []
    for number, draft in enumerate(drafts, 1):
        entry = _entry(session, report, draft, shown, who)
        flaws += [f"comment {number}: {flaw}" for flaw in _flaws(session, report, entry, shown)]
        made.append(entry)
    if flaws:
        message = "\n".join(["the comments cannot be taken:", *flaws[:_MOST_FLAWS]])
        raise UsageError(message, "nothing was sent")
    return made


def _entry(
    session: Session, report: CommittedReport, draft: CommentEntry, shown: str, who: str
) -> CommentEntry:
    edit = next((e for e in report.edits if e.id == draft.edit), None)
    path, side = draft.path or (edit.path if edit else None), draft.side
    if draft.lines and side is None:
        gone = path is not None and _lines(session, shown, path) is None
        there = gone and _lines(session, _parent(session, shown), path or "") is not None
        side = "base" if there else "new"
    return replace(
        draft,
        path=path,
        line=draft.lines and draft.lines[1],
        side=side if draft.lines else None,
        text=draft.text.strip("\n").rstrip(),
        by=draft.by or who,
    )


def _flaws(session: Session, report: Report, entry: CommentEntry, shown: str) -> Iterator[str]:
    if not entry.text.strip():
        yield "it says nothing"
    if secrecy.in_text(entry.text, ""):
        yield "it holds a secret, which is not passed on"
    if entry.edit is not None and entry.edit not in [edit.id for edit in report.edits]:
        yield f"there is no edit {visible(clip(entry.edit, 50))}"
    path, line = entry.path, entry.line
    if path is None and line is not None:
        yield f"line {line} of which file? name its path"
    if path is None:
        return
    sides = {"new": shown, "base": _parent(session, shown)}
    counts = {side: _lines(session, commit, path) for side, commit in sides.items()}
    name = visible(clip(path, 200))
    if line is None and set(counts.values()) == {None}:
        yield f"there is no file {name}"
    if line is not None and not 1 <= line <= (counts[entry.side or "new"] or 0):
        where = "base" if entry.side == "base" else "proposal"
        yield f"there is no line {line} of {name} in the {where}"


def _parent(session: Session, commit: str) -> str:
    return next(iter(session.repo.parents(commit)), commit)


def _lines(session: Session, commit: str, path: str) -> int | None:
    if not path or "\0" in path:
        return None
    text = session.repo.tree(commit).text(path)
    return None if text is None else len(split_lines(text))


# ---------------------------------------------------------------- taking back, and carrying out


def can_take_back(report: Report) -> bool:
    """Return True if the last decision on a change can be taken back."""
    discarded = report.state == "discarded" and has_commit(report)
    return discarded or bool(report.boarded) or waits_for_its_agent(report)


class TakeBack(Struct, frozen=True, tag_field="verb", tag="take-back"):
    """Take back the last decision on a change, if nothing followed from it.

    That is an acceptance that waits for its train, a request for changes without an answer, or a
    discard.
    """

    id: str

    def carry_out(self, session: Session) -> Decided:
        decide.refresh(session)
        report = session.queue.load(self.id)
        if report is not None and report.state == "discarded" and has_commit(report):
            return Decided(_propose_again(session, report))
        if report is not None and waits_for_its_agent(report):
            return Decided(rewrite(session, self.id, _not_asked))
        decide.proposal(session, self.id)
        updated = reports.unboard(session, self.id)
        if updated is None:
            raise UsageError(f"{self.id} was not accepted", f"see `patchq show {self.id}`")
        return Decided(updated)


def _propose_again(session: Session, report: CommittedReport) -> Report:
    id, repo = report.id, session.repo
    mark, branch = records.DISCARDED + id, records.branch(id)
    tip, log = repo.ref_target(mark), f"patchq: {id}: proposed again"
    if tip is None or not repo.exists(tip):
        raise UsageError(f"the commits of {id} are not there any more", f"try `patchq retry {id}`")
    with reports.locked(session):
        move = BranchMove(branch, None, tip, log, session.identity())
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


class Supersede(Struct, frozen=True, tag_field="verb", tag="supersede"):
    """Have the batch `by`, of another branch, take its place: see `reports.supersede`."""

    id: str
    by: str

    def carry_out(self, session: Session) -> Decided:
        reports.supersede_one(self.id, self.by, session)
        return Decided(from_git.find(session, self.id)[0])


Errand = Accept | TakeBack | Discuss | Discard | SendBack | Revert | Supersede


# The state in which the batch is once a command on it is carried out.
_ENDS: Mapping[str, State] = {
    "accept": "accepted",
    "discard": "discarded",
    "revert": "reverted",
    "supersede": "superseded",
}
_FAULT = ("code", "message", "hint", "exit_status", "retryable")


def carry_out(session: Session, words: Mapping[str, Any], *, again: bool) -> Mapping[str, Any]:
    """Carry out a command, perhaps once more, and return the answer.

    That may be a fault that concerns this command alone.  `errors.InDoubt` goes up: what was pushed
    is to be recovered first.
    """
    try:
        errand = convert(words, Errand)
    except ValidationError:
        return _refused(
            UsageError(
                "the worker that serves the branch does not know what is asked of it",
                "install the same patchq on all machines, then say it again",
            )
        )
    try:
        decided = errand.carry_out(session)
    except InDoubt:
        raise
    except Fault as fault:
        report = session.queue.load(errand.id)
        if not again or report is None or report.state != _ENDS.get(words["verb"]):
            return _refused(fault)
        decided = Decided(report)
    return {"decided": to_builtins(decided)}


def _refused(fault: Fault) -> Mapping[str, Any]:
    return {"fault": {name: getattr(fault, name) for name in _FAULT}}


def answered(answer: Mapping[str, Any]) -> Decided:
    """Return the outcome in the answer, or raise its fault."""
    if words := answer.get("fault"):
        fault = Fault(words["message"], words["hint"])
        for name in _FAULT:
            setattr(fault, name, words[name])
        raise fault
    return convert(answer["decided"], Decided)
