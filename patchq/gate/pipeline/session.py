"""The session: repository, queue, rules and engines of one process that decides.

A session is composed once, and never changes: another configuration is another session, by
`structs.replace`.  Derived settings are computed on first use and live as long as their session;
what outlives it (running hooks, the model's answers) is handed from one to the next.  A session
belongs to one thread.

What a person chose of a response (`Choice`) is kept beside the claim until the verdict: whoever
recovers the claim of a command that was killed, or decides again on one that is held, takes of the
response what the person chose, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from threading import Event
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import replace

from patchq.core.model.values import Base, Edit, HookRun
from patchq.core.plan.targets import PlanRules
from patchq.gate.config.policy import Policy, matcher
from patchq.gate.errors import UsageError
from patchq.gate.git.checkout import WorkTrees
from patchq.gate.git.objects import Identity
from patchq.gate.git.signing import Signer
from patchq.gate.hooks.configured import Steps, paths_named, steps
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue import Claim, Requests
from patchq.gate.queue.lock import Hand, Stage
from patchq.gate.report.schema import Report
from patchq.llm.chat import Cache, Chat
from patchq.llm.client import Model, Stop

if TYPE_CHECKING:  # who runs no hook imports nothing that runs hooks
    from patchq.gate.hooks.engine import Engine
    from patchq.gate.hooks.notifier import Notifier

DEFAULT_IDENTITY = ("patchq", "patchq@localhost")


class Choice(Struct, frozen=True):
    """A person's choice on a response, where it differs from what that says itself."""

    edits: frozenset[str] | None = None
    """The ids of the edits to take; None for all."""
    base: Base | None = None
    """The base to resolve on, in place of the response's own."""
    target: str | None = None
    """The branch to land on, which was allowed when the batch came."""
    accepted: bool = False
    """A person has looked: nothing is left to propose."""
    dry_run: bool = False
    """Write no object."""
    ahead: bool = False
    """In a dry run: as if what it depends on had landed."""
    in_stack: bool = False
    """It may be proposed on top of what it depends on, whatever the mode is."""
    left: Mapping[str, str | None] = {}
    """The ids of those left out, each with the edit that it needs and cannot have."""
    retries: str | None = None
    """The batch that is tried again."""

    def among(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Return those of the edits that are to be taken."""
        return tuple(edit for edit in edits if self.edits is None or edit.id in self.edits)

    def to_json(self) -> Mapping[str, Any]:
        """Return what `recorded` makes the choice of again; without its base and dry runs."""
        return {
            "edits": None if self.edits is None else sorted(self.edits),
            "left": dict(self.left),
            "target": self.target,
            "accepted": self.accepted,
            "retries": self.retries,
        }


AS_SENT = Choice()  # the response as it was sent


def recorded(claim: Claim) -> Choice | None:
    """Return the choice that was recorded with the claim, if one was."""
    return None if claim.choice is None else convert(claim.choice, Choice)


class Session(RepoContext, frozen=True, dict=True, kw_only=True):
    """The context, with everything that deciding on a response takes."""

    opened: ExitStack
    """Closes what was opened for it, in the end."""
    engine: Callable[[], Engine]
    """Makes the engine that runs hooks, beside the queue."""
    notifier: Callable[[], Notifier]
    """Makes the notifier, which lets hooks know of verdicts."""
    answers: Cache
    """The model's earlier answers."""
    stop: Stop
    """Cuts short what the model is asked, once the daemon is to stop."""
    cut: Event
    """Ends the notified hooks, once the daemon is to end at once."""
    clock: Callable[[], float] = time
    ask: Callable[[Claim], Choice | None] | None = None
    """Asks a person how to take a response, where one sits at a terminal and is to confirm it."""
    pulse: Callable[[], None] = lambda: None
    """Called often by the thread that does the work, as a sign that it goes on."""
    hand: Hand | None = None
    """Shows the current work of the process that empties the inbox."""
    desk: Requests | None = None
    """Asks the model for what requests ask for, if this process does."""

    serves: bool = False
    """True if this process serves lanes of a cluster."""

    def check_that_it_decides(self) -> None:
        """Raise `UsageError` in a cluster whose workers decide, if this process is none."""
        if self.config.has_cluster and not self.serves:
            raise UsageError(
                "here is a cluster, so its workers decide, and nothing on this machine does",
                "`patchq submit` has them do it, also once more with the same response; for what "
                "waits or has landed: patchq accept, discard, send-back, revert",
            )

    @cached_property
    def rules(self) -> PlanRules:
        config = self.config
        return PlanRules(
            levels=tuple(config.match.rungs),
            denied=lru_cache(maxsize=1024)(self.policy.denied),
            file_bytes=config.limits.file_bytes,
            new_directories=config.paths.new_directories,
            elision=config.validate_.elision,
            shrink=config.validate_.shrink,
            confidence=config.match.confidence,
            judged=lambda path: config.validate_.syntax and not self.unparsed(path),
            astray=lambda path: WorkTrees(self.repo).find(path).reason,
        )

    @cached_property
    def hooks(self) -> Steps:
        """The hooks of this configuration; `HookFault` if one is named that there is not."""
        return steps(self.config, self.repo.hooks_directory() if self.config.git_hooks else None)

    @cached_property
    def signer(self) -> Signer:
        """The signer of commits, where they are to be signed."""
        return Signer(self.repo, self.config.commit.sign)

    @cached_property
    def model(self) -> Model | None:
        """The model that corrects quotes, if one is configured and may."""
        llm = self.config.llm
        return Chat(llm, self.stop) if llm.model and llm.correct else None

    @cached_property
    def unparsed(self) -> Callable[[str], bool]:
        """A test of paths: True where the syntax is not checked."""
        return matcher(self.config.validate_.syntax_except)

    @cached_property
    def policy(self) -> Policy:
        """The rules on paths, with the files that hooks' lines name."""
        paths = self.config.paths
        return Policy(paths.deny, (*paths_named(self.config), *paths.review))

    @cached_property
    def _identity(self) -> Identity:
        return self.repo.identity() or Identity(*DEFAULT_IDENTITY)

    def identity(self, not_before: int = 0) -> Identity:
        """Return the committer, now, or then if that is later."""
        return replace(self._identity, when=max(int(self.clock()), not_before))

    def doing(
        self, batch: str, stage: Stage, hook: str | None = None
    ) -> AbstractContextManager[None]:
        """Show others what is done with a batch, as long as the block runs."""
        return self.hand.at(batch, stage, hook) if self.hand else nullcontext()

    def tell(self, report: Report) -> None:
        """Notify the hooks of a verdict that can be seen."""
        if self.hooks.following:
            self.notifier().tell(self.hooks, report)

    def hook_outputs(self, limit: int) -> list[tuple[str, HookRun]]:
        """Return outputs of notified hooks, not yet recorded."""
        return self.notifier().runs(limit) if self.hooks.following else []

    def follow(self, before: Report | None, report: Report) -> None:
        """Notify the hooks of a report that was rewritten."""
        if self.hooks.following:
            self.notifier().follow(self.hooks, before, report)

    def close(self) -> None:
        """Wait for the notified hooks, and let go of the repository."""
        self.opened.close()


def compose(context: RepoContext) -> Session:
    """Return the session of a process; the engine of hooks is made on first use."""
    repo, root = context.repo, context.queue_root
    opened = ExitStack()
    opened.callback(repo.close)
    cut = Event()

    @cache
    def engine() -> Engine:
        from patchq.gate.hooks.engine import Engine

        home = repo.workdir or repo.commondir
        return Engine(root / "hooks", repo.commondir / "objects", repo.hooks_directory(), home)

    @cache
    def notifier() -> Notifier:
        from patchq.gate.hooks.notifier import Notifier

        top = repo.workdir or repo.gitdir
        built = Notifier(engine(), root, repo.commondir, top, cut)
        opened.callback(built.close)
        return built

    return Session(
        repo,
        context.queue,
        root,
        context.config,
        context.target,
        context.branches,
        context.judged_by,
        opened=opened,
        engine=engine,
        notifier=notifier,
        answers=Cache(root),
        stop=Stop(),
        cut=cut,
    )


@dataclass
class Tips:
    """The branches' tips as they will be when the verdicts before this one have landed."""

    _session: Session
    unsure: set[str] | None = None
    """For those who land many batches at once, and look at the work tree that follows once, at the
    last moment: the paths that were in the way then, to be looked at before the next decision.
    None: each decision looks at all of its paths."""
    _moved: dict[str, str] = field(default_factory=dict)

    def of(self, branch: str) -> str | None:
        return self._moved.get(branch) or self._session.branches.tip(branch)

    def move(self, branch: str, tip: str) -> None:
        self._moved[branch] = tip
