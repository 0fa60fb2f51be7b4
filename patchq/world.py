"""What every stage of the pipeline may ask: the repository, the queue, and the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from time import perf_counter, time
from typing import Any, Literal

from patchq import secrecy
from patchq.asked import Asked
from patchq.config import Config
from patchq.hooks.engine import Engine
from patchq.hooks.steps import Steps, paths_named, steps
from patchq.identity import Identity
from patchq.llm.cache import Cache
from patchq.llm.chat import Chat
from patchq.llm.client import Model, Stop
from patchq.model import (
    Base,
    Correction,
    Edit,
    EditOutcome,
    Header,
    HookRun,
    Outcome,
    Problem,
    State,
)  # fmt: skip
from patchq.names import response_name
from patchq.policy import Policy, Ruling, matcher
from patchq.queue import Claim, Desk, Queue, Report
from patchq.repo import Repository
from patchq.repo.amending import hooks_directory
from patchq.resolve.targets import Rules
from patchq.telling import Teller

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
    ask: Callable[[Claim], Choice] | None = None
    """Asks a person how to take a response, where one sits at a terminal and is to confirm it."""
    pulse: Callable[[], None] = lambda: None
    """Called often by the thread that does the work, as a sign that it goes on."""
    desk: Desk | None = None
    """Who asks the model for what requests ask for, where somebody does."""
    stop: Stop = field(default_factory=Stop)
    """Cuts short what the model is asked, once the daemon is told to stop."""

    @cached_property
    def policy(self) -> Policy:
        review = (*paths_named(self.config), *self.config.paths.review)
        return Policy(self.config.paths.deny, review)

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
            judged=lambda path: self.config.validate_.syntax and not self.unparsed(path),
        )

    @cached_property
    def hooks(self) -> Steps:
        """The hooks of this configuration; `HookFault` if one is named that there is not."""
        own = hooks_directory(self.repo) if self.config.git_hooks else None
        return steps(self.config, own)

    @cached_property
    def engine(self) -> Engine:
        """What runs hooks, beside the queue."""
        store = self.repo.commondir / "objects"
        return Engine(self.queue_root / "hooks", store, hooks_directory(self.repo))

    def tell(self, told: Report) -> None:
        """Let the hooks know of a verdict that can be seen."""
        if self.hooks.after or self.hooks.rejected:
            self._teller.tell(self.hooks, told)

    def close(self) -> None:
        """Wait for the hooks that are being told, and let go of the repository."""
        if "_teller" in self.__dict__:
            self._teller.close()
        self.repo.close()

    @cached_property
    def _teller(self) -> Teller:
        return Teller(self.engine, self.queue_root, self.repo.workdir or self.repo.gitdir)

    @cached_property
    def model(self) -> Model | None:
        """What corrects quotes, if one is configured and may."""
        llm = self.config.llm
        return Chat(llm, self.stop) if llm.model and llm.correct else None

    @cached_property
    def answers(self) -> Cache:
        """What the model said before."""
        return Cache(self.queue_root / "answers")

    @cached_property
    def unparsed(self) -> Callable[[str], bool]:
        """Whether a path's syntax is not checked."""
        return matcher(self.config.validate_.syntax_except)

    def use(self, config: Config) -> None:
        """Go on under another configuration; the queue's place stays."""
        self.config = config
        for name in ("policy", "rules", "judge", "unparsed", "hooks", "model", "_identity"):
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
    base: Base | None = None
    """What to resolve on, in place of what the response says of it."""
    target: str | None = None
    """The branch to land on, which was allowed when the batch came."""
    accepted: bool = False
    """A person has looked: nothing is left to propose."""
    dry_run: bool = False
    """Write no object."""
    left: Mapping[str, str | None] = field(default_factory=dict)
    """Why others are left out: their ids, and the edit that each needs and cannot have."""
    retries: str | None = None
    """The batch that is tried again."""

    def of(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Those of the edits that are to be taken."""
        return tuple(edit for edit in edits if self.edits is None or edit.id in self.edits)


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
    hooks: list[HookRun] = field(default_factory=list)
    corrections: tuple[Correction, ...] = ()
    told: dict[str, Any] = field(default_factory=dict)
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
    def mode(self) -> Literal["review", "auto"]:
        """The configuration's mode; a request may ask for a review where it says `auto`."""
        return "review" if self.asked.mode == "review" else self.world.config.mode

    @property
    def asked(self) -> Asked:
        """What came of asking a model, if one was."""
        return self.claim.asked or Asked()

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
            branch=f"patchq/{self.id}" if self.state == "proposed" else None,
            edits=self.edits if self.state in _DONE else tuple(map(_undone, self.edits)),
            problems=tuple(self.problems),
            diff=self.diff,
            retries=self.header.retries,
            timings=dict(self.timings),
            hooks=tuple(self.hooks),
            corrections=self.corrections,
            attempts=self.asked.attempts,
            prompt=self.asked.prompt,
        )


def _undone(edit: EditOutcome) -> EditOutcome:
    """An edit of a batch that did not come to be: good as it is, and not applied."""
    return replace(edit, state="ready") if edit.state == "applied" else edit
