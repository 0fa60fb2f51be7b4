"""What is known of one response so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePath
from time import perf_counter

from patchq.git import records
from patchq.model.generation import Generation
from patchq.model.names import response_name
from patchq.model.report import COMMITTED, Report
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
from patchq.pipeline.overrides import WHOLE, Choice
from patchq.pipeline.world import World
from patchq.queue import Claim
from patchq.report import secrecy


class Refusal(Exception):
    """A stage refuses the response; carries what the report will say."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


class Settled(Exception):
    """The draft's verdict stands; the remaining stages have nothing to do."""


@dataclass
class Draft:
    """What is known of one response so far; `outcome` makes the report's view of it."""

    claim: Claim
    world: World
    choice: Choice = WHOLE
    id: str = ""
    header: Header = field(default_factory=Header)
    target: str | None = None
    base: Base | None = None
    parent: str | None = None
    """The tip (hex) that the commit was built on."""
    duplicate_of: str | None = None
    commit: str | None = None
    tree: str | None = None
    subject: str = ""
    summary: str | None = None
    """What the response says of itself as a whole."""
    author: str | None = None
    """Whom the response's text names as the change's author."""
    edits: tuple[EditOutcome, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    paths: tuple[str, ...] = ()
    follows: bool = False
    """Whether a work tree has the target checked out."""
    diff: str = ""
    state: State = "rejected"
    timings: dict[str, float] = field(default_factory=dict)
    hooks: list[HookRun] = field(default_factory=list)
    corrections: tuple[Correction, ...] = ()
    told: Report = field(init=False)
    """The report as JSON, once it is made."""
    page: str = ""

    def wanted_id(self) -> str:
        """The id that the response asks for: its front matter's, else its file's stem."""
        return secrecy.batch_id(self.header.id or self.stem)

    @property
    def stem(self) -> str:
        """The name of the response's file, without its suffix."""
        return PurePath(response_name(self.claim.source.name)).stem

    def warn(self, code: str, message: str, hint: str, path: str | None = None) -> None:
        self.problems.append(Problem(code, message, hint, severity="warning", path=path))

    @property
    def mode(self) -> Mode:
        """The configuration's mode; a request may ask for a review where it says `auto`."""
        return "review" if self.generation.mode == "review" else self.world.config.mode

    @property
    def generation(self) -> Generation:
        """What came of asking a model, if one was."""
        return self.claim.generation or Generation()

    def timed(self, name: str, since: float) -> None:
        self.timings[name] = round((perf_counter() - since) * 1000, 3)

    def outcome(self) -> Outcome:
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
            tree=self.tree,
            branch=records.branch(self.id) if self.state == "proposed" else None,
            edits=self.edits if self.state in COMMITTED else tuple(map(_undone, self.edits)),
            problems=tuple(self.problems),
            diff=self.diff,
            retries=self.header.retries,
            timings=dict(self.timings),
            hooks=tuple(self.hooks),
            corrections=self.corrections,
            attempts=self.generation.attempts,
            prompt=self.generation.prompt,
        )


def _undone(edit: EditOutcome) -> EditOutcome:
    """An edit of a batch that did not come to be: good as it is, and not applied."""
    return replace(edit, state="ready") if edit.state == "applied" else edit
