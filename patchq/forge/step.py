"""One step of a round: what is there of a proposal, and what is to be done about it.

Values in, actions out: no step asks the queue or git, and the forge only whose word counts.  A
`Writer` carries actions out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.text.quote import clip, visible
from patchq.forge import proposals
from patchq.forge.connect import ForgeReading
from patchq.forge.proposals import Proposal
from patchq.forge.wire import (
    Absent,
    Conversation,
    PullRequest,
    Rejected,
    Remark,
    StatusState,
    Thread,
    seconds,
)
from patchq.gate.api import deciding
from patchq.gate.errors import Busy, Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches.shown import Copies
from patchq.gate.land import reports
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report.schema import CommittedReport, Report, waits_for_its_agent
from patchq.gate.review.accept import Accept, Train
from patchq.gate.review.candidates import Member
from patchq.gate.review.decide import Discard
from patchq.gate.review.errands import Errand, SendBack, TakeBack

_LONGEST_STATUS = 140
_SHORTEST_COMMIT = 7
_LONGEST_TEXT = 3500
LANDED = frozenset({"accepted", "applied", "reverted"})


class Action(Struct, frozen=True):
    """An action of a round: its words, and the call that does it.

    `number` is the request that it is about; one that `decides` changes the proposal here.
    """

    words: str
    do: Callable[[Writer], object]
    number: int | None = None
    decides: bool = False

    def __str__(self) -> str:
        return self.words


def note(number: int, text: str, key: str) -> Action:
    """Comment on a request, once for each key."""
    return Action(f"comment on #{number}: {text}", lambda to: to.note(number, text, key), number)


def edit(number: int, what: dict[str, str]) -> Action:
    is_end = what.get("state") == "closed"
    line = f"close #{number}" if is_end else f"edit #{number}: {', '.join(what)}"
    return Action(line, lambda to: to.forge.edit(number, **what), number)


def reply(number: int, thread: Thread, text: str, key: str) -> Action:
    signed = proposals.signed(text, key)
    return Action(
        f"answer in {thread.path} of #{number}: {text}",
        lambda to: to.forge.reply(number, thread, signed),
        number,
    )


def resolve(number: int, thread: Thread) -> Action:
    line = f"resolve the thread in {thread.path} of #{number}"
    return Action(line, lambda to: to.forge.resolve(thread), number)


def set_status(commit: str, state: StatusState, text: str) -> Action:
    line = f"status of {commit[:12]}: {state}, {text}"
    return Action(line, lambda to: to.set_status(commit, state, text))


def decide(line: str, number: int, errand: Errand) -> Action:
    return Action(line, lambda to: to.decide(errand), number, decides=True)


# ---------------------------------------------------------------- steps


def step(
    proposal: Proposal, request: PullRequest | None, talk: Conversation, rules: Writer
) -> Iterator[Action]:
    """Yield the actions on a waiting proposal and its request."""
    if request is not None and not request.is_open:
        mark = proposals.mark_in(request.body)
        closed_there = mark is not None and mark.state == "proposed"
        if request.merged or (closed_there and rules.section.on_close == "keep"):
            return
        if closed_there:
            by = rules.forge.closed_by(request.number)
            reason = f"closed on the forge by {by or 'an unknown account'}"
            line = f"discard {proposal.report.id}, as #{request.number} was closed"
            yield decide(line, request.number, Discard(proposal.report.id, reason))
            return
        request = None
    there, commit = proposal.there, proposal.commit
    if there in proposal.pushed | {None, commit}:
        if there is None or (there != commit and (talk.conflicts or not proposal.same(there))):
            line = f"push {records.branch(proposal.root)} at {commit[:12]}"
            yield Action(line, lambda to: to.push(proposal.root, commit))
    elif there is not None and commit == proposal.report.commit:
        id = proposal.report.id
        line = f"take over what was pushed to {records.branch(id)}: {there[:12]}"
        yield Action(line, lambda to: to.adopt(id, there), decides=True)
    if request is None:
        branch, base = records.branch(proposal.root), proposal.base
        body = proposals.within("", proposal.block)
        line = f"open a pull request for {branch} into {base}"
        yield Action(line, lambda to: to.open(branch, base, proposal.title, body))
        return
    mark = proposals.mark_in(request.body)
    is_own = mark is not None and proposals.digest(request.title) == mark.title
    wanted = {
        "title": proposal.title if is_own else request.title,  # a person's stays
        "body": proposals.within(request.body, proposal.block),
        "base": proposal.base,
    }
    if what := {key: it for key, it in wanted.items() if getattr(request, key) != it}:
        yield edit(request.number, what)
    yield from _answers(proposal, request.number, talk)
    yield from _decided(proposal, request, talk, rules)


def _answers(proposal: Proposal, number: int, talk: Conversation) -> Iterator[Action]:
    review = proposal.report.review
    comments = {one.origin: one for one in review.comments if one.origin} if review else {}
    for thread in talk.threads:
        found = [comments[text.id] for text in thread.texts if text.id in comments]
        if not review or not found:
            continue
        comment, key = found[-1], f"answer {proposal.report.id}"
        answered = review.state == "answered"
        if answered and not any(proposals.has_signed(text.text, key) for text in thread.texts):
            yield reply(number, thread, proposals.answer(comment, proposal.report.commit), key)
        settled = (answered and comment.changed) or comment.state == "resolved"
        if settled and thread.id and not thread.resolved:
            yield resolve(number, thread)


def _decided(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Writer
) -> Iterator[Action]:
    """Yield the action for a decision of people that is not carried out yet."""
    report = proposal.report
    if report.boarded:
        return
    decisions = latest(proposal, request, talk, rules)
    asked = [one for one in decisions if one.what == "changes"]
    if new := [one for one in asked if not _is_told(one, proposal, talk)]:
        yield send_back(new, proposal, request, talk, rules)
        return
    blocked = any(proposal.same(one.commit) for one in asked if one.commit)
    refused = any(problem.code.startswith("hook.") for problem in report.problems)
    for one in decisions:
        wanted = one.command or rules.section.on_approve == "accept"
        if wanted and not blocked and not refused and is_approval(one, proposal):
            seen = {proposal.report.id: proposal.commit}
            line = f"accept {proposal.report.id}, approved by {one.by} in #{request.number}"
            errand = Accept((proposal.report.id,), seen=seen, wait=rules.alone, by=one.by)
            yield decide(line, request.number, errand)
            return


def send_back(
    new: Sequence[Remark],
    proposal: Proposal,
    request: PullRequest,
    talk: Conversation,
    rules: Writer,
) -> Action:
    id, by, number = proposal.report.id, new[-1].by, request.number
    remarks = unsent(proposal, request, talk, rules)
    remarks = remarks or [(None, replace(new[-1], text="asks for changes"))]
    drafts = tuple(proposal.draft(thread, remark) for thread, remark in remarks)
    count = "1 comment" if len(drafts) == 1 else f"{len(drafts)} comments"
    line = f"send {id} back for {by} in #{number}: {count}"
    return decide(line, number, SendBack(id, drafts, by, proposal.commit))


def merge(proposal: Proposal, request: PullRequest, rules: Writer) -> Iterator[Action]:
    report, number = proposal.report, request.number
    ready = request.base == report.target and proposal.same(request.head)
    if report.boarded and rules.section.land == "merge" and ready:
        yield Action(f"merge #{number}", lambda to: to.merge(report, request), number, decides=True)


def latest(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Writer
) -> list[Remark]:
    firm = [one for one in talk.remarks if one.what != "comment"]
    return list({one.by: one for one in firm if _counts(one, proposal, request, rules)}.values())


def is_approval(decision: Remark, proposal: Proposal) -> bool:
    """Return True if the decision approves this content after it was last sent back."""
    report, review = proposal.report, proposal.report.review
    is_late = not review or not waits_for_its_agent(report) or seconds(decision.at) > review.at.unix
    named = len(decision.commit) >= _SHORTEST_COMMIT
    return decision.what == "approved" and named and is_late and proposal.same(decision.commit)


def _counts(one: Remark, proposal: Proposal, request: PullRequest, rules: Writer) -> bool:
    """Return True if the decision is by a person entitled to decide this request."""
    agent = (proposal.report.agent or "").casefold()
    is_own = one.by in (request.author, rules.reading.me) or one.by.casefold() == agent
    may = rules.is_named if one.command else lambda by: not is_own and rules.may(by)
    return bool(one.by) and not one.bot and may(one.by)


def _is_told(decision: Remark, proposal: Proposal, talk: Conversation) -> bool:
    """Return True if the agent has the decision or a comment of its review."""
    texts = [*talk.remarks, *(one for thread in talk.threads for one in thread.texts)]
    ids = {one.id for one in texts if one.review and one.review == decision.review}
    return any(origin in ids | {decision.id} for origin, _ in proposal.known)


def unsent(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Writer
) -> list[tuple[Thread | None, Remark]]:
    """Return what people who may decide wrote, and the agent has not got."""
    threads = [thread for thread in talk.threads if not thread.resolved]
    beside = [(None, one) for one in talk.remarks if one.what != "dismissed"]
    return [
        (thread, replace(one, text=plain(one.text)))
        for thread, one in [*beside, *((thread, one) for thread in threads for one in thread.texts)]
        if _is_new(one, proposal, request, rules)
    ]


def _is_new(one: Remark, proposal: Proposal, request: PullRequest, rules: Writer) -> bool:
    text, by = plain(one.text), one.by
    if not text or proposals.is_own(one.text) or one.bot:
        return False
    sent = any(one.id == origin and whole.endswith(text) for origin, whole in proposal.known)
    return not sent and (rules.is_named(by) or (by != request.author and rules.may(by)))


def plain(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return clip(text.strip(), _LONGEST_TEXT)


def ended(
    request: PullRequest, report: Report, mark: proposals.Mark, is_merged: bool
) -> Iterator[Action]:
    """Yield the actions on the request of a change that is decided here.

    `is_merged`: the forge finds its head in the history, and will say so by itself soon.
    """
    id, number, state = report.id, request.number, report.state
    if request.is_open and mark.state == "discarded" == state:
        line = f"propose {id} again, as #{number} was opened again"
        yield decide(line, number, TakeBack(id))
        return
    landed = state in LANDED
    now = proposals.Mark(mark.queue, id, state, mark.title)
    what = {"body": request.body.replace(str(mark), str(now))}
    if request.is_open and not (landed and is_merged):
        by = f" by {report.duplicate_of}" if report.duplicate_of else ""
        reason = f": {proposals.code(report.reason)}" if report.reason else ""
        why = f"landed on {report.target} as {report.commit}" if landed else state + by + reason
        yield note(number, why, f"{state} {id}")
        yield edit(number, {"state": "closed", **what})
    elif not request.is_open and now != mark:
        yield edit(number, what)


# ---------------------------------------------------------------- carrying them out


class Writer:
    """Writes to the forge, the queue and the copies, by people's rights.

    Rights are as the forge has them at first.  `alone`: no other process serves the queue, so this
    one lands what it accepts.
    """

    def __init__(self, session: Session, reading: ForgeReading) -> None:
        self.session, self.reading, self.forge = session, reading, reading.forge
        self.section, self.alone = session.config.forge, lock_owner(session.queue_root) is None
        timeout = session.config.landing.push_timeout_seconds
        self.copies = Copies(session.repo, self.section.remote, timeout)
        self.is_named, self.may = lru_cache(self._is_named), lru_cache(self._may)

    def _is_named(self, login: str) -> bool:
        people, is_member = self.section.people, self.forge.is_member
        named = login.casefold() in map(str.casefold, people)
        return named or any(is_member(one, login) for one in people if "/" in one)

    def _may(self, login: str) -> bool:
        return self.is_named(login) if self.section.people else self.forge.may(login)

    def carry_out(self, action: Action) -> None:
        """Carry an action out; its own failure is reported, and retried later."""
        try:
            action.do(self)
        except Busy:
            raise
        except (Absent, Rejected) as fault:
            self.reading.warn(f"cannot {action}: {fault.message}")
        except Fault as fault:
            if not action.decides:
                raise
            self._answer(action, fault.message)
        finally:
            self.reading.forget(action.number)

    def _answer(self, action: Action, why: str) -> None:
        self.reading.warn(f"cannot {action}: {why}")
        if action.number is not None:
            key = f"refused {proposals.digest(str(action) + why)}"
            text = f"patchq could not {proposals.code(str(action))}: {proposals.code(why)}"
            self.carry_out(note(action.number, text, key))

    def push(self, root: str, commit: str | None) -> None:
        if why := self.copies.push({root: commit}, self.session.identity()):
            self.reading.warn(f"{records.branch(root)} stays as it is on the remote: {why}")

    def open(self, branch: str, base: str, title: str, body: str) -> None:
        if made := self.forge.open(branch, base, title, body):
            self.reading.add(made)

    def note(self, number: int, text: str, key: str) -> None:
        """Comment on a request, unless the comment with that key is there."""
        known = self.reading.talk(self.reading.requests.get(number)).remarks
        if not any(proposals.has_signed(one.text, key) for one in known):
            self.forge.note(number, proposals.signed(text, key))

    def set_status(self, commit: str, state: StatusState, text: str) -> None:
        self.reading.statuses.pop(commit, None)
        self.forge.set_status(commit, state, clip(visible(text), _LONGEST_STATUS))

    def adopt(self, id: str, commit: str) -> None:
        session, name = self.session, records.BRANCHES + id
        now, who = session.repo.ref_target(name), session.identity()
        refs.move(session.repo, name, now, commit, "patchq: pushed by a person", who)
        reports.reconcile(session, [id])

    def decide(self, errand: Errand) -> None:
        decided = deciding.decide(self.session, errand)
        if decided.problems:
            raise Fault(decided.problems[0].message)

    def merge(self, report: CommittedReport, request: PullRequest) -> None:
        """Check what was accepted, and have the forge merge it; warn of a difference."""
        session, train = self.session, _Checked(self.session, report.target, lambda *_: None)
        if chain := train.join([report]):
            train.clear(chain, alone=True)
        if not train.members:
            raise Fault(train.done[report.id].problems[0].message)
        candidate = train.members[0].decision
        flush(session)
        message = session.repo.message(candidate.commit)
        commit = self.forge.merge(request.number, request.head, message)
        session.branches.refresh()
        reports.reconcile(session, [report.id])
        if session.repo.tree(commit).root != candidate.tree:
            self.reading.warn(
                f"the forge merged #{request.number} as {commit}, which is not what was checked: "
                f"see git diff {candidate.commit} {commit}"
            )


@dataclass
class _Checked(Train):
    """A train that stops where it would land; `members` passed the checks."""

    members: list[Member] = field(default_factory=list)

    def land(self, members: Sequence[Member]) -> bool:
        self.members += members
        return True
