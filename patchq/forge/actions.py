"""Actions of a round and what carries them out: calls of the forge, of the queue, and of git.

`ForgeReading` is a process's memory of the forge: it saves requests, and may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from patchq.forge import words
from patchq.forge.contract import CommitStatus, Conversation, Project, PullRequest
from patchq.forge.wire import Absent, Rejected
from patchq.gate.api import deciding
from patchq.gate.errors import Busy, Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches.shown import Copies
from patchq.gate.land import reports
from patchq.gate.pipeline.context import flush
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import CommittedReport
from patchq.gate.review.accept import Train
from patchq.gate.review.candidates import Member
from patchq.gate.review.errands import Errand


class ForgeReading:
    """Requests, conversations and statuses of one project."""

    def __init__(self, forge: Project) -> None:
        self._forge = forge
        self.requests: dict[int, PullRequest] = {}
        self._since: str | None = None
        self._asked: set[str] = set()
        self._talks: dict[int, tuple[str, Conversation]] = {}
        self.statuses: dict[str, CommitStatus | None] = {}

    @cached_property
    def me(self) -> str:
        return self._forge.me()

    def refresh(self) -> bool:
        """Update the requests from the forge; return False if none changed."""
        changed = self._forge.changed(self._since)
        new = {one.number: one for one in changed if records.is_branch(one.branch)}
        moved = any(self.requests.get(number) != one for number, one in new.items())
        self.requests |= new
        self._since = max((one.updated for one in changed), default=self._since)
        return moved

    def request_of(self, branch: str) -> PullRequest | None:
        """Return the request of a branch: the open one, else the newest."""
        found = [one for one in self.requests.values() if one.branch == branch]
        if not found and branch not in self._asked:
            found = list(self._forge.of_branch(branch))
            self._asked.add(branch)
            self.requests |= {one.number: one for one in found}
        return max(found, key=lambda one: (one.is_open, one.number), default=None)

    def add(self, request: PullRequest) -> None:
        self.requests[request.number] = request
        self._since = self._since or request.updated

    def talk(self, request: PullRequest | None) -> Conversation:
        if request is None or not request.is_open:
            return Conversation()
        updated, talk = self._talks.get(request.number, ("", Conversation()))
        if updated != request.updated:
            talk = self._forge.conversation(request.number)
            self._talks[request.number] = request.updated, talk
        return talk

    def status(self, sha: str) -> CommitStatus | None:
        if sha not in self.statuses:
            self.statuses[sha] = self._forge.status(sha)
        return self.statuses[sha]

    def forget(self, number: int | None) -> None:
        """Drop the cached conversation, which is about to change."""
        self._talks.pop(number or 0, None)


# ---------------------------------------------------------------- actions


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


class Writer:
    """Writes to the forge, the queue and the copies; problems go to `warn`."""

    def __init__(
        self,
        session: Session,
        forge: Project,
        reading: ForgeReading,
        copies: Copies,
        warn: Callable[[str], None],
    ) -> None:
        self.forge, self._session, self._reading = forge, session, reading
        self._copies, self._warn = copies, warn

    def carry_out(self, action: Action) -> None:
        """Carry an action out; its own failure is reported, and retried later."""
        try:
            action.do(self)
        except Busy:
            raise
        except (Absent, Rejected) as fault:
            self._warn(f"cannot {action}: {fault.message}")
        except Fault as fault:
            if not action.decides:
                raise
            self._answer(action, fault.message)
        finally:
            self._reading.forget(action.number)

    def _answer(self, action: Action, why: str) -> None:
        self._warn(f"cannot {action}: {why}")
        if action.number is not None:
            key = f"refused {words.digest(str(action) + why)}"
            text = f"patchq could not {words.code(str(action))}: {words.code(why)}"
            self.carry_out(note(action.number, text, key))

    def push(self, root: str, commit: str | None) -> None:
        if why := self._copies.push({root: commit}, self._session.identity()):
            self._warn(f"{records.branch(root)} stays as it is on the remote: {why}")

    def open(self, branch: str, base: str, title: str, body: str) -> None:
        if made := self.forge.open(branch, base, title, body):
            self._reading.add(made)

    def note(self, number: int, text: str, key: str) -> None:
        """Comment on a request, unless the comment with that key is there."""
        known = self._reading.talk(self._reading.requests.get(number)).remarks
        if not any(words.has_signed(one.text, key) for one in known):
            self.forge.note(number, words.signed(text, key))

    def set_status(self, commit: str, status: CommitStatus) -> None:
        self._reading.statuses.pop(commit, None)
        self.forge.set_status(commit, status)

    def adopt(self, id: str, commit: str) -> None:
        session, name = self._session, records.BRANCHES + id
        now, who = session.repo.ref_target(name), session.identity()
        refs.move(session.repo, name, now, commit, "patchq: pushed by a person", who)
        reports.reconcile(session, [id])

    def decide(self, errand: Errand) -> None:
        decided = deciding.decide(self._session, errand)
        if decided.problems:
            raise Fault(decided.problems[0].message)

    def merge(self, report: CommittedReport, request: PullRequest) -> None:
        """Check what was accepted, and have the forge merge it; warn of a difference."""
        session, train = self._session, _Checked(self._session, report.target, lambda *_: None)
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
            self._warn(
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
