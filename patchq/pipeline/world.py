"""What every stage of the pipeline may ask: the repository, the queue, and the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from time import time

from patchq.config.policy import Policy, Ruling, matcher
from patchq.config.schema import Config
from patchq.git import files
from patchq.git.identity import Identity
from patchq.git.repository import Repository
from patchq.hooks.engine import Engine
from patchq.hooks.notify import Notifier
from patchq.hooks.steps import Steps, paths_named, steps
from patchq.llm.cache import Cache
from patchq.llm.chat import Chat
from patchq.llm.client import Model, Stop
from patchq.model.report import Report
from patchq.pipeline.choice import Choice
from patchq.plan.targets import Rules
from patchq.queue import Claim, Desk, Queue

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
    ask: Callable[[Claim], Choice | None] | None = None
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
        own = self.repo.hooks_directory() if self.config.git_hooks else None
        return steps(self.config, own)

    @cached_property
    def engine(self) -> Engine:
        """What runs hooks, beside the queue."""
        store = self.repo.commondir / "objects"
        return Engine(self.queue_root / "hooks", store, self.repo.hooks_directory())

    def tell(self, report: Report) -> None:
        """Let the hooks know of a verdict that can be seen."""
        if self.hooks.after or self.hooks.rejected:
            self._teller.tell(self.hooks, report)

    def close(self) -> None:
        """Wait for the hooks that are being told, and let go of the repository."""
        if "_teller" in self.__dict__:
            self._teller.close()
        self.repo.close()

    @cached_property
    def _teller(self) -> Notifier:
        return Notifier(self.engine, self.queue_root, self.repo.workdir or self.repo.gitdir)

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


def flush(world: World) -> None:
    """Write what is still in memory, with one barrier for objects, refs and the queue, or two where
    the queue is on a file system of its own."""
    world.repo.write_objects(lambda: files.barrier(world.repo.commondir, world.queue_root))
