"""What is decided on one response, and the commit that would land."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from patchq.git import records
from patchq.model.generation import Generation
from patchq.model.report import COMMITTED
from patchq.model.values import (  # fmt: skip
    Base,
    Correction,
    EditOutcome,
    Header,
    HookRun,
    Mode,
    Outcome,
    Problem,
    State,
)
from patchq.pipeline.choice import Choice
from patchq.queue import Claim


@dataclass(frozen=True, slots=True)
class CandidateCommit:
    """A commit that can land; ids in hex.  Nothing reaches it yet."""

    target: str
    parent: str
    """The target's tip that it was built on."""
    base: str
    """The commit that its edits were resolved on; `parent` where nothing else is known."""
    commit: str
    tree: str
    paths: tuple[str, ...]
    follows: bool = False
    """Whether a work tree that has the target checked out has to follow."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The verdict on one response: `state` is what it is once the `candidate`, if there is one, has
    landed.  What was not known when the decision fell is empty."""

    claim: Claim
    choice: Choice
    id: str
    mode: Mode
    state: State
    header: Header = field(default_factory=Header)
    target: str | None = None
    tip: str | None = None
    """The target's tip (hex) that was looked at."""
    base: Base | None = None
    duplicate_of: str | None = None
    candidate: CandidateCommit | None = None
    subject: str = ""
    edits: tuple[EditOutcome, ...] = ()
    problems: tuple[Problem, ...] = ()
    diff: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    hooks: tuple[HookRun, ...] = ()
    corrections: tuple[Correction, ...] = ()

    def then(self, stage: Callable[..., object]) -> Decision:
        """The stages that would follow have nothing to do."""
        return self

    @property
    def lands(self) -> bool:
        """Whether it is one for a commit: nothing speaks against it so far."""
        return self.state in COMMITTED

    @property
    def commit(self) -> str | None:
        return self.candidate.commit if self.candidate else None

    @property
    def follows(self) -> bool:
        return self.candidate is not None and self.candidate.follows

    def ended(self, state: State, *problems: Problem) -> Decision:
        """The same batch with a verdict under which nothing lands."""
        return replace(self, state=state, candidate=None, problems=(*self.problems, *problems))

    def outcome(self) -> Outcome:
        """The report's view of it."""
        generation = self.claim.generation or Generation()
        return Outcome(
            id=self.id,
            state=self.state,
            source=self.claim.source,
            mode=self.mode,
            target=self.target,
            duplicate_of=self.duplicate_of,
            agent=self.header.agent,
            model=self.header.model,
            base=self.base,
            commit=self.commit,
            tree=self.candidate.tree if self.candidate else None,
            branch=records.branch(self.id) if self.state == "proposed" else None,
            edits=self.edits if self.lands else tuple(map(_undone, self.edits)),
            problems=self.problems,
            diff=self.diff,
            retries=self.header.retries,
            timings=dict(self.timings),
            hooks=self.hooks,
            corrections=self.corrections,
            attempts=generation.attempts,
            prompt=generation.prompt,
        )


def _undone(edit: EditOutcome) -> EditOutcome:
    """An edit of a batch that did not come to be: good as it is, and not applied."""
    return replace(edit, state="ready") if edit.state == "applied" else edit
