"""A response that a person is to confirm: what it would do, and the choice among its edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from patchq.core.model.values import EditOutcome
from patchq.gate.api import dry_run
from patchq.gate.pipeline import selection
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.queue import Claim


class Question:
    """The report that a response would get now; `lands` if it can land as it is.

    `stopped` is true once a signal asks to end.
    """

    def __init__(self, session: Session, claim: Claim, stopped: Callable[[], bool]) -> None:
        self._session, self._claim, self.stopped = session, claim, stopped
        self._edits: Sequence[EditOutcome] = ()
        self.choose(None)
        self._edits = self.report.edits

    @property
    def ids(self) -> list[str]:
        """All edits of the response."""
        return [edit.id for edit in self._edits]

    def choose(self, only: frozenset[str] | None) -> None:
        """Look at these edits alone, or at all; raises `UsageError` for an unknown one."""
        self.choice: Choice | None = None
        if only is not None:
            chosen = selection.select(self._edits, only, frozenset())
            self.choice = Choice(edits=chosen.taken, left=chosen.left)
        decision = dry_run.preview(self._session, self._claim, self.choice)
        self.report = decision.report()
        stuck = any(problem.code.startswith("worktree.") for problem in decision.problems)
        # A work tree keeps it from landing, or the proposal below it, which waits.
        self.lands = decision.state == "proposed" and not stuck and not decision.on


Ask = Callable[[Question], bool]


def confirm(session: Session, ask: Ask, stopped: Callable[[], bool], claim: Claim) -> Choice | None:
    """Return the choice by which a response lands; None where a person does not want it."""
    question = Question(session, claim, stopped)
    return replace(question.choice or Choice(), accepted=True) if ask(question) else None
