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

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from threading import Event
from time import time
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, convert
from msgspec.structs import replace

from patchq.core.model.values import Base, Edit, EditOutcome
from patchq.core.plan.files import outcome
from patchq.core.plan.targets import PlanRules
from patchq.gate.config.policy import Policy, matcher
from patchq.gate.errors import UsageError
from patchq.gate.git.checkout import WorkTrees
from patchq.gate.git.objects import Identity
from patchq.gate.git.signing import Signer
from patchq.gate.hooks.configured import Steps, paths_named, steps
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue import Claim
from patchq.gate.queue.lock import Lock, WorkStage
from patchq.gate.report.schema import IDLE, Report
from patchq.llm.chat import Cache, Chat, Stop

if TYPE_CHECKING:
    from patchq.gate.hooks.engine import Engine, Notifier


DEFAULT_IDENTITY = ("patchq", "patchq@localhost")


class Choice(Struct, frozen=True):
    """A person's choice on a response, where it differs from what that says itself.

    `left` are the ids of the edits not to take, each with the edit that it needs and cannot have.
    `base` is the one to resolve on, and `target` the branch to land on, which was allowed when the
    batch came.  `accepted`: a person has looked, and nothing is left to propose.  `dry_run` writes
    no object; `ahead`, in a dry run, takes what it depends on as landed; `in_stack` lets it be
    proposed on top of that, whatever the mode is.
    """

    base: Base | None = None
    target: str | None = None
    accepted: bool = False
    dry_run: bool = False
    ahead: bool = False
    in_stack: bool = False
    left: Mapping[str, str | None] = {}
    retries: str | None = None

    def among(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        return tuple(edit for edit in edits if edit.id not in self.left)


class Requests(Protocol):
    """A desk that takes requests, and gives them back once they are answered (`requests`)."""

    def take(self, claim: Claim, session: Session) -> None: ...

    def answered(self, session: Session, wait: float = 0.0) -> list[Claim]: ...

    def refused(self, report: Report, session: Session) -> None: ...


AS_SENT = Choice()  # the response as it was sent


def recorded(claim: Claim) -> Choice | None:
    return None if claim.choice is None else convert(claim.choice, Choice)


class Session(RepoContext, frozen=True, dict=True, kw_only=True):
    """The context, with everything that deciding on a response takes.

    `stop` cuts short what the model is asked, once the daemon is to stop, and `cut` ends the
    notified hooks, once it is to end at once.  `ask` asks a person at a terminal how to take a
    response; `desk` asks the model for what requests ask for.  `pulse` is called often by the
    thread that does the work, as a sign that it goes on.  `serves`: this process serves lanes of a
    cluster.
    """

    opened: ExitStack
    engine: Callable[[], Engine]
    notifier: Callable[[], Notifier]
    answers: Cache
    stop: Stop
    cut: Event
    clock: Callable[[], float] = time
    ask: Callable[[Claim], Choice | None] | None = None
    pulse: Callable[[], None] = lambda: None
    lock: Lock | None = None
    desk: Requests | None = None
    serves: bool = False

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
        unparsed = matcher(config.validate_.syntax_except)
        return PlanRules(
            levels=tuple(config.match.rungs),
            denied=lru_cache(maxsize=1024)(self.policy.denied),
            file_bytes=config.limits.file_bytes,
            new_directories=config.paths.new_directories,
            elision=config.validate_.elision,
            shrink=config.validate_.shrink,
            confidence=config.match.confidence,
            judged=lambda path: config.validate_.syntax and not unparsed(path),
            astray=lambda path: WorkTrees(self.repo).find(path).reason,
        )

    @cached_property
    def hooks(self) -> Steps:
        """The hooks of this configuration; `HookFault` if one is named that there is not."""
        return steps(self.config, self.repo.hooks_directory() if self.config.git_hooks else None)

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.repo, self.config.commit.sign)

    @cached_property
    def model(self) -> Chat | None:
        llm = self.config.llm
        return Chat(llm, self.stop) if llm.model and llm.correct else None

    @cached_property
    def policy(self) -> Policy:
        paths = self.config.paths
        return Policy(paths.deny, (*paths_named(self.config), *paths.review))

    @cached_property
    def _identity(self) -> Identity:
        return self.repo.identity() or Identity(*DEFAULT_IDENTITY)

    def identity(self, not_before: int = 0) -> Identity:
        """Return the committer, now, or then if that is later."""
        return replace(self._identity, when=max(int(self.clock()), not_before))

    def doing(
        self, batch: str, stage: WorkStage, hook: str | None = None
    ) -> AbstractContextManager[None]:
        """Show others what is done with a batch, as long as the block runs."""
        return self.lock.at(batch, stage, hook) if self.lock else nullcontext()

    def tell(self, report: Report, before: Report | None = None) -> None:
        if self.hooks.following:
            self.notifier().tell(self.hooks, report, before)

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
        from patchq.gate.hooks.engine import Notifier

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
    """Tips of the branches once the verdicts before this one have landed.

    Who lands many batches at once looks at the work tree that follows once, at the last moment;
    what that stopped is `tried` again (tokens of claims), and each decision on that looks first.
    None: each decision looks.
    """

    _session: Session
    tried: Container[str] | None = None
    _moved: dict[str, str] = field(default_factory=dict)

    def of(self, branch: str) -> str | None:
        return self._moved.get(branch) or self._session.branches.tip(branch)

    def looks(self, claim: Claim) -> bool:
        """Return True if a decision is to look at the work tree that follows."""
        return self.tried is None or claim.token in self.tried

    def move(self, branch: str, tip: str) -> None:
        self._moved[branch] = tip


Edits = Sequence[EditOutcome]  # the entries of a report's `edits`


def select(
    choice: Choice, edits: Edits, only: frozenset[str] | None, without: frozenset[str]
) -> Choice:
    """Return the choice of the edits `only`, or of all but `without`.

    Edits that those of `only` need are chosen, too, and edits that need a left-out one are left
    out.  Raises `UsageError` for ids that there are not, and where nothing is left.
    """
    needs = {edit.id: edit.needs for edit in edits}
    unknown = sorted((set(only or ()) | without) - needs.keys())
    if unknown:
        raise UsageError(
            f"the change has no edit {', '.join(unknown)}",
            f"its edits: {', '.join(needs) or 'none could be read'}",
        )
    left: dict[str, str | None] = dict.fromkeys(without)
    if only is not None:
        selected = set(only)
        while more := {need for id in selected for need in needs[id]} - selected:
            selected |= more
        left = dict.fromkeys(needs.keys() - selected)
    while lacking := {
        id: need for id in needs.keys() - left.keys() for need in needs[id] if need in left
    }:
        left |= lacking
    if not needs.keys() - left.keys():
        raise UsageError("no edit would be left", "to take none of them, `patchq discard` it")
    return replace(choice, left=left)


def with_left_out(
    done: Iterable[EditOutcome], edits: Sequence[Edit], left: Mapping[str, str | None]
) -> tuple[EditOutcome, ...]:
    """Return the outcomes of all edits: of those that were taken, and those `left` out."""
    if not left:
        return tuple(done)
    outcomes = iter(done)
    return tuple(
        outcome(edit, "cancelled" if left[edit.id] else "skipped", left[edit.id])
        if edit.id in left
        else next(outcomes)
        for edit in edits
    )


def brought_back(before: Edits, now: Edits) -> list[str]:
    """Return the edits that count only now, as those before them are left out."""
    done = {edit.id for edit in now if edit.state == "applied"}
    back = {edit.id for edit in before if edit.state in IDLE} & done
    return sorted(back - {edit.id for edit in before if edit.state not in IDLE})


def taken_along(before: Edits, now: Edits) -> list[tuple[str, str]]:
    """Return the newly cancelled edits, each with the missing one it needs."""
    counted = {edit.id for edit in before if edit.state not in IDLE}
    return [
        (edit.id, edit.cancelled_by)
        for edit in now
        if edit.state == "cancelled" and edit.cancelled_by and edit.id in counted
    ]
