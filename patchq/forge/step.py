"""One step of a round: what is there of a proposal, and what is to be done about it.

Values in, actions out: nothing here asks the queue or git, and the forge only whose word counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from patchq.forge import words
from patchq.forge.actions import Action, Writer, note
from patchq.forge.contract import (
    CommitStatus,
    Conversation,
    Project,
    PullRequest,
    Remark,
    Thread,
    seconds,
)
from patchq.forge.proposals import Proposal
from patchq.gate.config.schema import Forge
from patchq.gate.git import records
from patchq.gate.report.schema import Report, waits_for_its_agent
from patchq.gate.review.accept import Accept
from patchq.gate.review.decide import Discard
from patchq.gate.review.errands import Errand, TakeBack
from patchq.gate.review.send_back import SendBack

_SHORTEST_COMMIT = 7
_LONGEST_TEXT = 3500
LANDED = frozenset({"accepted", "applied", "reverted"})


def push(root: str, commit: str) -> Action:
    return Action(f"push {records.branch(root)} at {commit[:12]}", lambda to: to.push(root, commit))


def remove(root: str) -> Action:
    return Action(f"delete {records.branch(root)} there", lambda to: to.push(root, None))


def edit(number: int, what: dict[str, str]) -> Action:
    is_end = what.get("state") == "closed"
    line = f"close #{number}" if is_end else f"edit #{number}: {', '.join(what)}"
    return Action(line, lambda to: to.forge.edit(number, **what), number)


def reply(number: int, thread: Thread, text: str, key: str) -> Action:
    signed = words.signed(text, key)
    return Action(
        f"answer in {thread.path} of #{number}: {text}",
        lambda to: to.forge.reply(number, thread, signed),
        number,
    )


def resolve(number: int, thread: Thread) -> Action:
    return Action(
        f"resolve the thread in {thread.path} of #{number}",
        lambda to: to.forge.resolve(thread),
        number,
    )


def set_status(commit: str, status: CommitStatus) -> Action:
    return Action(
        f"status of {commit[:12]}: {status.state}, {status.text}",
        lambda to: to.set_status(commit, status),
    )


def decide(line: str, number: int, errand: Errand) -> Action:
    return Action(line, lambda to: to.decide(errand), number, decides=True)


# ---------------------------------------------------------------- people who decide


class Deciders(Struct, frozen=True):
    """People who may decide, and the rules for it.

    `named` are accounts of `forge.people`.  `alone`: no other process serves the queue, so this one
    lands what it accepts.
    """

    me: str
    section: Forge
    alone: bool
    may: Callable[[str], bool]
    is_named: Callable[[str], bool]


def rules_of(forge: Project, section: Forge, me: str, alone: bool) -> Deciders:
    """Return the rules for decisions, with rights as the forge has them now."""
    logins = {one.casefold() for one in section.people if "/" not in one}
    teams = [one for one in section.people if "/" in one]

    @lru_cache
    def is_named(login: str) -> bool:
        return login.casefold() in logins or any(forge.is_member(team, login) for team in teams)

    @lru_cache
    def may(login: str) -> bool:
        return is_named(login) if section.people else forge.may(login)

    return Deciders(me, section, alone, may, is_named)


# ---------------------------------------------------------------- steps


def head(proposal: Proposal, talk: Conversation) -> Iterator[Action]:
    """Yield the actions on a proposal's copy."""
    there, commit = proposal.there, proposal.commit
    if there == commit:
        return
    if there is not None and there not in proposal.pushed:
        if commit == proposal.report.commit:
            line = f"take over what was pushed to {records.branch(proposal.id)}: {there[:12]}"
            yield Action(line, lambda to: to.adopt(proposal.id, there), decides=True)
    elif there is None or talk.conflicts or not proposal.same(there):
        yield push(proposal.root, commit)


def step(
    proposal: Proposal, request: PullRequest | None, talk: Conversation, rules: Deciders
) -> Iterator[Action]:
    """Yield the actions on a waiting proposal and its request."""
    if request is not None and not request.is_open:
        mark = words.mark_in(request.body)
        closed_there = mark is not None and mark.state == "proposed"
        if request.merged or (closed_there and rules.section.on_close == "keep"):
            return
        if closed_there:
            yield _discard(proposal.id, request.number)
            return
        request = None
    yield from head(proposal, talk)
    if request is None:
        branch, base = records.branch(proposal.root), proposal.base
        body = words.within("", proposal.block)
        line = f"open a pull request for {branch} into {base}"
        yield Action(line, lambda to: to.open(branch, base, proposal.title, body))
        return
    if what := _edits(proposal, request):
        yield edit(request.number, what)
    yield from _answers(proposal, request.number, talk)
    yield from _decided(proposal, request, talk, rules)


def _discard(id: str, number: int) -> Action:
    def discard(to: Writer) -> None:
        by = to.forge.closed_by(number)
        to.decide(Discard(id, f"closed on the forge{f' by {by}' if by else ''}"))

    return Action(f"discard {id}, as #{number} was closed", discard, number, decides=True)


def _edits(proposal: Proposal, request: PullRequest) -> dict[str, str]:
    """Return the fields of a request to change; a person's title stays."""
    mark = words.mark_in(request.body)
    is_own = mark is not None and words.digest(request.title) == mark.title
    title = proposal.title if is_own else request.title
    body = words.within(request.body, proposal.block)
    wanted = {"title": title, "body": body, "base": proposal.base}
    return {key: value for key, value in wanted.items() if getattr(request, key) != value}


def _answers(proposal: Proposal, number: int, talk: Conversation) -> Iterator[Action]:
    review = proposal.report.review
    comments = {one.origin: one for one in review.comments if one.origin} if review else {}
    for thread in talk.threads:
        found = [comments[text.id] for text in thread.texts if text.id in comments]
        if not review or not found:
            continue
        comment, key = found[-1], f"answer {proposal.id}"
        answered = review.state == "answered"
        if answered and not any(words.has_signed(text.text, key) for text in thread.texts):
            yield reply(number, thread, words.answer(comment, proposal.report.commit), key)
        settled = (answered and comment.changed) or comment.state == "resolved"
        if settled and thread.id and not thread.resolved:
            yield resolve(number, thread)


def _decided(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> Iterator[Action]:
    """Yield the action for a decision of people that is not carried out yet."""
    report = proposal.report
    if report.boarded:
        return
    latest = _latest(proposal, request, talk, rules)
    asked = [one for one in latest if one.what == "changes"]
    if new := [one for one in asked if not _is_told(one, proposal, talk)]:
        yield send_back(new, proposal, request, talk, rules)
        return
    blocked = any(proposal.same(one.commit) for one in asked if one.commit)
    refused = any(problem.code.startswith("hook.") for problem in report.problems)
    for one in latest:
        wanted = one.command or rules.section.on_approve == "accept"
        if wanted and not blocked and not refused and is_approval(one, proposal):
            seen = {proposal.id: proposal.commit}
            line = f"accept {proposal.id}, approved by {one.by} in #{request.number}"
            errand = Accept((proposal.id,), seen=seen, wait=rules.alone, by=one.by)
            yield decide(line, request.number, errand)
            return


def send_back(
    new: Sequence[Remark],
    proposal: Proposal,
    request: PullRequest,
    talk: Conversation,
    rules: Deciders,
) -> Action:
    id, by, number = proposal.id, new[-1].by, request.number
    remarks = list(_comments(new, proposal, talk, request, rules))
    drafts = tuple(proposal.draft(thread, remark) for thread, remark in remarks)
    count = "1 comment" if len(drafts) == 1 else f"{len(drafts)} comments"
    line = f"send {id} back for {by} in #{number}: {count}"
    return decide(line, number, SendBack(id, drafts, by, proposal.commit))


def merge(proposal: Proposal, request: PullRequest, rules: Deciders) -> Iterator[Action]:
    report, number = proposal.report, request.number
    ready = request.base == report.target and proposal.same(request.head)
    if report.boarded and rules.section.land == "merge" and ready:
        yield Action(f"merge #{number}", lambda to: to.merge(report, request), number, decides=True)


def _latest(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> list[Remark]:
    firm = [one for one in talk.remarks if one.what != "comment"]
    return list({one.by: one for one in firm if _counts(one, proposal, request, rules)}.values())


def approvals(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> list[str]:
    latest = _latest(proposal, request, talk, rules)
    return [one.by for one in latest if is_approval(one, proposal)]


def is_approval(decision: Remark, proposal: Proposal) -> bool:
    """Return True if the decision approves this content after it was last sent back."""
    named = len(decision.commit) >= _SHORTEST_COMMIT
    if decision.what != "approved" or not named or not proposal.same(decision.commit):
        return False
    review = proposal.report.review
    if not waits_for_its_agent(proposal.report) or review is None:
        return True
    return seconds(decision.at) > review.at.unix


def _counts(one: Remark, proposal: Proposal, request: PullRequest, rules: Deciders) -> bool:
    """Return True if the decision is by a person entitled to decide this request."""
    if one.bot or not one.by:
        return False
    if one.command:
        return rules.is_named(one.by)
    agent = (proposal.report.agent or "").casefold()
    others = one.by not in (request.author, rules.me) and one.by.casefold() != agent
    return others and rules.may(one.by)


def _is_told(decision: Remark, proposal: Proposal, talk: Conversation) -> bool:
    """Return True if the agent has the decision or a comment of its review."""
    belong = [one for thread in talk.threads for one in thread.texts if one.review]
    ids = {one.id for one in belong if one.review == decision.review} | {decision.id}
    return any(origin in ids for origin, _ in proposal.known)


def _comments(
    decisions: Sequence[Remark],
    proposal: Proposal,
    talk: Conversation,
    request: PullRequest,
    rules: Deciders,
) -> Iterator[tuple[Thread | None, Remark]]:
    lines = _on_lines(proposal, request, talk, rules)
    for one in decisions:
        belong = [text for _, text in lines if one.review and text.review == one.review]
        if one.text.strip() or not belong:
            yield None, replace(one, text=plain(one.text) or "asks for changes")
    yield from lines


def unsent(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> list[tuple[Thread | None, Remark]]:
    """Return the comments of people who may decide that the agent has not got."""
    beside = [one for one in talk.remarks if one.what == "comment"]
    found = [_new(one, proposal, request, rules) for one in beside]
    return [
        *((None, one) for one in found if one),
        *_on_lines(proposal, request, talk, rules),
    ]


def _on_lines(
    proposal: Proposal, request: PullRequest, talk: Conversation, rules: Deciders
) -> list[tuple[Thread | None, Remark]]:
    threads = [thread for thread in talk.threads if not thread.resolved]
    return [
        (thread, new)
        for thread in threads
        for one in thread.texts
        if (new := _new(one, proposal, request, rules))
    ]


def _new(one: Remark, proposal: Proposal, request: PullRequest, rules: Deciders) -> Remark | None:
    """Return a comment as its agent gets it; None for known or unauthorised ones."""
    text, by = plain(one.text), one.by
    if not text or words.is_own(one.text) or one.bot:
        return None
    sent = any(one.id == origin and whole.endswith(text) for origin, whole in proposal.known)
    may = rules.is_named(by) or (by != request.author and rules.may(by))
    return replace(one, text=text) if may and not sent else None


def plain(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"


def ended(
    request: PullRequest, report: Report, mark: words.Mark, is_merged: bool
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
    now = words.Mark(mark.queue, id, state, mark.title)
    what = {"body": request.body.replace(str(mark), str(now))}
    if request.is_open and not (landed and is_merged):
        by = f" by {report.duplicate_of}" if report.duplicate_of else ""
        reason = f": {words.code(report.reason)}" if report.reason else ""
        why = f"landed on {report.target} as {report.commit}" if landed else state + by + reason
        yield note(number, why, f"{state} {id}")
        yield edit(number, {"state": "closed", **what})
    elif not request.is_open and now != mark:
        yield edit(number, what)
