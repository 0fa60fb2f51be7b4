"""What carries out the actions of a round: the calls of the forge, of the queue, and of git."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from patchq.forge import words
from patchq.forge.contract import CommitStatus, Project, PullRequest
from patchq.forge.merging import merged
from patchq.forge.reading import ForgeReading
from patchq.forge.wire import Absent, Rejected
from patchq.gate.api import deciding
from patchq.gate.errors import Busy, Fault
from patchq.gate.git import records, refs
from patchq.gate.git.branches.shown import Copies
from patchq.gate.land import reports
from patchq.gate.pipeline.session import Session
from patchq.gate.report.schema import CommittedReport
from patchq.gate.review.errands import Errand


class Action(Struct, frozen=True):
    """One thing to do: its words, and the call that does it.

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
    """Both sides as they are written; `warn` is given what is in the way."""

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
        """Carry an action out; a failure of it alone is reported, and tried again later."""
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
            if action.number is not None:
                self._reading.wrote(action.number)

    def _answer(self, action: Action, why: str) -> None:
        """Say on the request, once, why a decision was not carried out."""
        self._warn(f"cannot {action}: {why}")
        if action.number is not None:
            key = f"refused {words.digest(str(action) + why)}"
            text = f"patchq could not {words.code(str(action))}: {words.code(why)}"
            self.carry_out(note(action.number, text, key))

    def push(self, root: str, commit: str | None) -> None:
        """Have a copy end at a commit; None takes it away."""
        if why := self._copies.push({root: commit}, self._session.identity()):
            self._warn(f"{records.branch(root)} stays as it is on the remote: {why}")

    def open(self, branch: str, base: str, title: str, body: str) -> None:
        """Open a request, unless there is one."""
        if made := self.forge.open(branch, base, title, body):
            self._reading.add(made)

    def note(self, number: int, text: str, key: str) -> None:
        """Comment on a request, unless the comment with that key is there."""
        known = self._reading.talk(self._reading.requests.get(number)).remarks
        if not any(words.has_signed(one.text, key) for one in known):
            self.forge.note(number, words.signed(text, key))

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Set patchq's status of a commit."""
        self._reading.statuses.pop(commit, None)
        self.forge.set_status(commit, status)

    def adopt(self, id: str, commit: str) -> None:
        """Take over what a person pushed."""
        session, name = self._session, records.BRANCHES + id
        now, who = session.repo.ref_target(name), session.identity()
        refs.move(session.repo, name, now, commit, "patchq: pushed by a person", who)
        reports.reconcile(session, [id])

    def decide(self, errand: Errand) -> None:
        """Carry out here what people decided there; raises why it cannot be."""
        decided = deciding.decide(self._session, errand)
        if decided.problems:
            raise Fault(decided.problems[0].message)

    def merge(self, report: CommittedReport, request: PullRequest) -> None:
        """Have the forge merge what was accepted, as checked on its target's tip."""
        if warning := merged(self._session, self.forge, report, request):
            self._warn(warning)
