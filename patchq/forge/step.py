"""One step of a round: what is there of a proposal, and what is to be done about it.

Values in, actions out: nothing here asks the forge, the queue or git.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from patchq.forge import words
from patchq.forge.contract import (
    CommitStatus,
    Conversation,
    Opinion,
    PullRequest,
    Remark,
    Thread,
    seconds,
)
from patchq.gate.git import records
from patchq.gate.report.schema import CommittedReport, Report, waits_for_its_agent

_SHORTEST_COMMIT = 7
_LONGEST_TEXT = 3500
LANDED = frozenset({"accepted", "applied", "reverted"})

# ---------------------------------------------------------------- actions


class PushCopy(Struct, frozen=True):
    """Have the copy of a proposal end at a commit."""

    root: str
    commit: str

    def __str__(self) -> str:
        return f"push {records.branch(self.root)} at {self.commit[:12]}"


class RemoveCopy(Struct, frozen=True):
    """Delete the copy of a proposal that is decided."""

    root: str

    def __str__(self) -> str:
        return f"delete {records.branch(self.root)} there"


class AdoptPush(Struct, frozen=True):
    """Take over what a person pushed."""

    id: str
    commit: str

    def __str__(self) -> str:
        return f"take over what was pushed to {records.branch(self.id)}: {self.commit[:12]}"


class OpenRequest(Struct, frozen=True):
    """Open a request."""

    root: str
    base: str
    title: str
    body: str

    def __str__(self) -> str:
        return f"open a pull request for {records.branch(self.root)} into {self.base}"


class EditRequest(Struct, frozen=True):
    """Set fields of a request."""

    number: int
    what: dict[str, str]

    def __str__(self) -> str:
        closes = self.what.get("state") == "closed"
        return f"close #{self.number}" if closes else f"edit #{self.number}: {', '.join(self.what)}"


class AddNote(Struct, frozen=True):
    """Comment on a request, once for each `key`."""

    number: int
    text: str
    key: str

    def __str__(self) -> str:
        return f"comment on #{self.number}: {self.text}"


class AddReply(Struct, frozen=True):
    """Answer in a thread."""

    number: int
    thread: Thread
    text: str
    key: str

    def __str__(self) -> str:
        return f"answer in {self.thread.path} of #{self.number}: {self.text}"


class ResolveThread(Struct, frozen=True):
    """Resolve a thread."""

    number: int
    thread: Thread

    def __str__(self) -> str:
        return f"resolve the thread in {self.thread.path} of #{self.number}"


class SetStatus(Struct, frozen=True):
    """Set patchq's status of a commit."""

    commit: str
    status: CommitStatus

    def __str__(self) -> str:
        return f"status of {self.commit[:12]}: {self.status.state}, {self.status.text}"


class AcceptApproved(Struct, frozen=True):
    """Accept a proposal as it was approved."""

    id: str
    number: int
    by: str

    def __str__(self) -> str:
        return f"accept {self.id}, approved by {self.by} in #{self.number}"


class SendBackReviewed(Struct, frozen=True):
    """Send a proposal back with remarks; one without a thread is on all of it."""

    id: str
    number: int
    by: str
    comments: tuple[tuple[Thread | None, Remark], ...]

    def __str__(self) -> str:
        count = len(self.comments)
        plural = "" if count == 1 else "s"
        return f"send {self.id} back for {self.by} in #{self.number}: {count} comment{plural}"


class DiscardClosed(Struct, frozen=True):
    """Discard a proposal whose request was closed."""

    id: str
    number: int

    def __str__(self) -> str:
        return f"discard {self.id}, as #{self.number} was closed"


class ReopenDiscarded(Struct, frozen=True):
    """Propose again what was discarded, as its request was opened again."""

    id: str
    number: int

    def __str__(self) -> str:
        return f"propose {self.id} again, as #{self.number} was opened again"


Action = (
    PushCopy | RemoveCopy | AdoptPush | OpenRequest | EditRequest | AddNote | AddReply
    | ResolveThread | SetStatus | AcceptApproved | SendBackReviewed | DiscardClosed
    | ReopenDiscarded
)  # fmt: skip

# ---------------------------------------------------------------- what is there


class Copy(Struct, frozen=True):
    """The copy of a proposal on the remote: its commit, and all that were pushed from here."""

    root: str
    there: str | None
    pushed: frozenset[str]


class Proposal(Struct, frozen=True):
    """A proposal, and how it is to look; `known` are origins and texts of all comments so far."""

    report: CommittedReport
    commit: str
    copy: Copy
    base: str
    title: str
    block: str
    mark: words.Mark
    known: frozenset[tuple[str, str]]
    same: Callable[[str], bool]
    """True of a commit that makes the same change."""

    @property
    def id(self) -> str:
        return self.report.id


class Deciders(Struct, frozen=True):
    """People who decide, and what their word does; `named` are accounts of `forge.people`."""

    me: str
    on_approve: str
    on_close: str
    may: Callable[[str], bool]
    is_named: Callable[[str], bool]


# ---------------------------------------------------------------- steps


def head(proposal: Proposal, talk: Conversation) -> Iterator[Action]:
    """Yield what is to be done about the copy."""
    copy, commit, own = proposal.copy, proposal.commit, proposal.report.commit
    if copy.there == commit:
        return
    if copy.there is not None and copy.there not in copy.pushed:
        if commit == own:
            yield AdoptPush(proposal.id, copy.there)
        return
    same = copy.there is not None and proposal.same(copy.there)
    if not same or talk.conflicts:
        yield PushCopy(copy.root, commit)


def step(
    proposal: Proposal, request: PullRequest | None, talk: Conversation, rules: Deciders
) -> Iterator[Action]:
    """Yield what is to be done about a proposal that waits, and its request."""
    if request is not None and not request.is_open:
        mark = words.mark_in(request.body)
        closed_there = mark is not None and mark.state == "proposed"
        if request.merged or (closed_there and rules.on_close == "keep"):
            return
        if closed_there:
            yield DiscardClosed(proposal.id, request.number)
            return
        request = None
    yield from head(proposal, talk)
    if request is None:
        body = words.within("", proposal.block)
        yield OpenRequest(proposal.copy.root, proposal.base, proposal.title, body)
        return
    if what := dict(_edits(proposal, request)):
        yield EditRequest(request.number, what)
    yield from _answers(proposal, request.number, talk)
    yield from _decided(proposal, request, talk, rules)


def _edits(proposal: Proposal, request: PullRequest) -> Iterator[tuple[str, str]]:
    mark = words.mark_in(request.body)
    if mark and words.digest(request.title) == mark.title != proposal.mark.title:
        yield "title", proposal.title
    body = words.within(request.body, proposal.block)
    if body != request.body:
        yield "body", body
    if request.base != proposal.base:
        yield "base", proposal.base


def _answers(proposal: Proposal, number: int, talk: Conversation) -> Iterator[Action]:
    """Yield a reply for each thread that the proposal answers."""
    review = proposal.report.review
    comments = {one.origin: one for one in review.comments if one.origin} if review else {}
    for thread in talk.threads:
        found = [comments[text.id] for text in thread.texts if text.id in comments]
        if not review or not found:
            continue
        comment, key = found[-1], f"answer {proposal.id}"
        answered = review.state == "answered"
        if answered and not any(words.has_signed(text.text, key) for text in thread.texts):
            yield AddReply(number, thread, words.answer(comment, proposal.report.commit), key)
        settled = (answered and comment.changed) or comment.state == "resolved"
        if settled and thread.id and not thread.resolved:
            yield ResolveThread(number, thread)


def _decided(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> Iterator[Action]:
    """Yield the decision that people came to and that is not carried out yet."""
    report = proposal.report
    if report.boarded:
        return
    latest = {
        one.by: one
        for one in talk.decisions
        if one.what != "comment" and _counts(one, proposal, request, rules)
    }
    origins = {origin for origin, _ in proposal.known}
    asked = [one for one in latest.values() if one.what == "changes"]
    if new := [one for one in asked if not _is_told(one, talk, origins)]:
        comments = tuple(_comments(new, proposal, talk, request, rules))
        yield SendBackReviewed(proposal.id, request.number, new[-1].by, comments)
        return
    blocked = any(proposal.same(one.commit) for one in asked if one.commit)
    refused = any(problem.code.startswith("hook.") for problem in report.problems)
    for one in latest.values():
        wanted = one.command or rules.on_approve == "accept"
        if wanted and not blocked and not refused and is_approval(one, proposal):
            yield AcceptApproved(proposal.id, request.number, one.by)
            return


def approvals(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> list[str]:
    """Return who approves of the proposal as it is."""
    firm = [one for one in talk.decisions if one.what != "comment"]
    latest = {one.by: one for one in firm if _counts(one, proposal, request, rules)}
    return [one.by for one in latest.values() if is_approval(one, proposal)]


def is_approval(decision: Opinion, proposal: Proposal) -> bool:
    """Return True if the decision approves of this content, later than it was sent back."""
    named = len(decision.commit) >= _SHORTEST_COMMIT
    if decision.what != "approved" or not named or not proposal.same(decision.commit):
        return False
    review = proposal.report.review
    if not waits_for_its_agent(proposal.report) or review is None:
        return True
    return seconds(decision.at) > review.at.unix


def _counts(one: Opinion, proposal: Proposal, request: PullRequest, rules: Deciders) -> bool:
    """Return True if it is the decision of a person who may decide on this request."""
    if one.bot or not one.by:
        return False
    if one.command:
        return rules.is_named(one.by)
    agent = (proposal.report.agent or "").casefold()
    others = one.by not in (request.author, rules.me) and one.by.casefold() != agent
    return others and rules.may(one.by)


def _is_told(decision: Opinion, talk: Conversation, origins: set[str]) -> bool:
    if decision.id in origins:
        return True
    return any(
        text.id in origins and text.review == decision.review
        for thread in talk.threads
        for text in thread.texts
        if decision.review
    )


def _comments(
    decisions: Sequence[Opinion],
    proposal: Proposal,
    talk: Conversation,
    request: PullRequest,
    rules: Deciders,
) -> Iterator[tuple[Thread | None, Remark]]:
    """Yield what goes to the agent: the decisions' words, and what is open on lines."""
    lines = list(unsent(proposal, talk, request, rules))
    for one in decisions:
        if one.text.strip() or not any(text.review == one.review for _, text in lines):
            words_of = plain(one.text) or "asks for changes"
            yield None, Remark(one.id, one.by, words_of)
    yield from lines


def unsent(
    proposal: Proposal, talk: Conversation, request: PullRequest, rules: Deciders
) -> Iterator[tuple[Thread, Remark]]:
    """Yield comments in open threads, by people who may decide, that the agent has not got."""
    for thread in talk.threads:
        for one in thread.texts if not thread.resolved else ():
            text = plain(one.text)
            if not text or words.is_own(one.text) or one.bot:
                continue
            sent = any(
                one.id == origin and whole.endswith(text) for origin, whole in proposal.known
            )
            by = one.by
            if not sent and (rules.is_named(by) or (by != request.author and rules.may(by))):
                yield thread, Remark(one.id, by, text, review=one.review)


def plain(text: str) -> str:
    """Return a comment as the agent gets it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"


def ended(
    request: PullRequest, report: Report, mark: words.Mark, is_merged: bool
) -> Iterator[Action]:
    """Yield what is to be done about the request of a change that is decided here.

    `is_merged`: the forge finds its head in the history, and will say so by itself.
    """
    state, by = report.state, report.duplicate_of
    mark = words.Mark(mark.queue, report.id, state, mark.title)
    current = words.mark_in(request.body)
    body = request.body.replace(str(current), str(mark)) if current else request.body
    if request.is_open and current and current.state == "discarded" == state:
        yield ReopenDiscarded(report.id, request.number)
        return
    landed = report.state in LANDED
    if request.is_open and landed and is_merged:
        return
    if request.is_open:
        if landed:
            yield SetStatus(request.head, words.landed(""))
        where = f"landed on {report.target} as {report.commit}"
        why = where if landed else f"{state}{f' by {by}' if by else ''}"
        if report.reason and not landed:
            why += f": {words.code(report.reason)}"
        yield AddNote(request.number, why, f"{state} {report.id}")
        yield EditRequest(request.number, {"state": "closed", "body": body})
    elif body != request.body:
        if landed:
            yield SetStatus(request.head, words.landed(""))
        yield EditRequest(request.number, {"body": body})
