"""What every stage of the pipeline may ask: the repository, the queue, and the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from time import perf_counter, time
from typing import Any

from patchq.config import Config
from patchq.identity import Identity
from patchq.model import Base, EditOutcome, Header, Outcome, Problem, State
from patchq.names import batch_id
from patchq.policy import Policy, Ruling, matcher
from patchq.queue import Claim, Queue
from patchq.repo import Repository
from patchq.resolve.targets import Rules

_DONE: frozenset[State] = frozenset({"applied", "proposed"})
NOBODY = ("patchq", "patchq@localhost")


@dataclass
class World:
    """One repository with its queue, under one configuration; `target` is the default branch."""

    repo: Repository
    queue: Queue
    queue_root: Path
    config: Config
    target: str
    clock: Callable[[], float] = time

    @cached_property
    def policy(self) -> Policy:
        return Policy(self.config.paths.deny, self.config.paths.review)

    @cached_property
    def rules(self) -> Rules:
        return Rules(
            rungs=tuple(self.config.match.rungs),
            denied=self._denied,
            file_bytes=self.config.limits.file_bytes,
            new_directories=self.config.paths.new_directories,
            elision=self.config.validate_.elision,
            shrink=self.config.validate_.shrink,
            confidence=self.config.match.confidence,
        )

    @cached_property
    def unparsed(self) -> Callable[[str], bool]:
        """Whether a path's syntax is not checked."""
        return matcher(self.config.validate_.syntax_except)

    def use(self, config: Config) -> None:
        """Go on under another configuration; the queue's place stays."""
        self.config = config
        for name in ("policy", "rules", "judge", "unparsed", "_identity"):
            self.__dict__.pop(name, None)

    def _denied(self, path: str) -> str | None:
        ruling = self.judge(path)
        if ruling is None or ruling.code != "path.denied":
            return None
        if ruling.structural:
            return f"patchq never touches `{ruling.pattern}`"
        return f"`paths.deny` has the pattern `{ruling.pattern}`"

    def identity(self) -> Identity:
        """Who commits, now."""
        return replace(self._identity, when=int(self.clock()))

    @cached_property
    def _identity(self) -> Identity:
        return self.repo.identity() or Identity(*NOBODY)

    @cached_property
    def judge(self) -> Callable[[str], Ruling | None]:
        """The policy's ruling on a path; it is asked more than once for each."""
        return lru_cache(maxsize=1024)(self.policy.judge)


class Tips:
    """The branches' tips as they will be when the verdicts before this one have landed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._moved: dict[str, str] = {}

    def of(self, branch: str) -> str | None:
        return self._moved.get(branch) or self._world.repo.branch_tip(branch)

    def move(self, branch: str, tip: str) -> None:
        self._moved[branch] = tip

    def forget(self) -> None:
        """Read every branch anew."""
        self._moved.clear()


class Refusal(Exception):
    """A stage refuses the response; carries what the report will say."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


class Settled(Exception):
    """The draft's verdict stands; the remaining stages have nothing to do."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a person wants a response taken, where that differs from what it says itself."""

    edits: frozenset[str] | None = None
    """The ids of the edits to take; None for all."""
    base: str | None = None
    """The commit to resolve on, in place of the declared one."""
    target: str | None = None
    """The branch to land on, which was allowed when the batch came."""
    accepted: bool = False
    """A person has looked: nothing is left to propose."""
    dry_run: bool = False
    """Write no object."""


WHOLE = Choice()


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
    told: dict[str, Any] = field(default_factory=dict)
    """The report as JSON, once it is made."""
    page: str = ""

    def wanted_id(self) -> str:
        """The id that the response asks for: its front matter's, else its file's stem."""
        return batch_id(self.header.id or PurePath(self.claim.source.name).stem)

    def warn(self, code: str, message: str, hint: str, path: str | None = None) -> None:
        self.problems.append(Problem(code, message, hint, severity="warning", path=path))

    def timed(self, name: str, since: float) -> None:
        self.timings[name] = round((perf_counter() - since) * 1000, 3)

    def outcome(self) -> Outcome:
        return Outcome(
            id=self.id,
            state=self.state,
            source=self.claim.source,
            mode=self.world.config.mode,
            target=self.target,
            duplicate_of=self.duplicate_of,
            agent=self.header.agent,
            model=self.header.model,
            base=self.base,
            commit=self.commit,
            tree=self.tree,
            branch=f"patchq/{self.id}" if self.state == "proposed" else None,
            edits=self.edits if self.state in _DONE else tuple(map(_undone, self.edits)),
            problems=tuple(self.problems),
            diff=self.diff,
            retries=self.header.retries,
            timings=dict(self.timings),
        )


def _undone(edit: EditOutcome) -> EditOutcome:
    """An edit of a batch that did not come to be: good as it is, and not applied."""
    return replace(edit, state="ready") if edit.state == "applied" else edit
