"""Asking the hooks about candidates, many at once, before any of them lands.

Each candidate is built on those before it, and is checked so: the tree that lands is the tree that
the hooks saw.  When one of them is refused, or changed by a hook that fixes, those that were built
on it are dropped at once, to be decided again without it; all others keep their verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TypeVar

from patchq.git import records
from patchq.hooks.engine import HookInput, processors
from patchq.hooks.jail.process import Cancelled
from patchq.hooks.jail.worktree import Objects
from patchq.hooks.steps import Step
from patchq.hooks.verdicts import Verdict
from patchq.land import fixes
from patchq.model.errors import Fault
from patchq.model.report import COMMITTED, BatchDocument
from patchq.model.values import EditOutcome, FileChange, Problem
from patchq.pipeline import stages
from patchq.pipeline.draft import Draft, Refusal, Settled
from patchq.pipeline.world import World
from patchq.report import document, logs
from patchq.text import unified

_PULSE_SECONDS = 1.0
T = TypeVar("T")
R = TypeVar("R")


def group_size(world: World, usual: int) -> int:
    """How many batches are decided before they are checked: few, where a check takes its time."""
    return 2 * processors() if world.hooks.parallel else usual


def check(drafts: Sequence[Draft], world: World, *, as_it_stands: bool = False) -> list[Draft]:
    """Ask the hooks about every commit of `drafts` that is to land, and refuse what they refuse.

    Returns the drafts that were built on one which does not land as it was: they are to be decided
    again.  `as_it_stands`: hooks may not change the commit.  Raises `HookFault` if a hook cannot be
    started.
    """
    steps = world.hooks
    asked = [draft for draft in drafts if draft.commit and draft.state in COMMITTED]
    if not asked or not steps.before:
        return []
    check = _Check(world, as_it_stands, {draft.commit: Event() for draft in asked if draft.commit})
    if steps.parallel:
        _together(lambda draft: check.one(draft, asked), asked, check.stop_all, world.pulse)
    else:
        for draft in asked:
            check.one(draft, asked)
    return [draft for draft in drafts if draft.parent in check.gone]


@dataclass
class _Check:
    """One group's check; `stops` has an event for each candidate that is to be dropped."""

    world: World
    as_it_stands: bool
    stops: dict[str, Event]
    gone: set[str] = field(default_factory=set)
    """Commits that do not land."""
    lock: Lock = field(default_factory=Lock)
    """Held by whoever uses the repository."""

    def stop_all(self) -> None:
        for stop in self.stops.values():
            stop.set()

    def one(self, draft: Draft, group: Sequence[Draft]) -> None:
        commit = draft.commit
        assert commit
        try:
            with logs.about(draft.id):
                self._ask(draft, self.stops[commit])
        except Cancelled:
            return
        except Refusal as refusal:
            draft.problems += refusal.problems
            draft.state, draft.commit, draft.tree = "rejected", None, None
        except Settled:
            draft.commit, draft.tree = None, None
        except Fault:
            raise
        except Exception as error:
            stages.crashed(draft, error)
            draft.commit, draft.tree = None, None
        if draft.commit != commit:
            self._drop_those_on(commit, group)

    def _drop_those_on(self, commit: str, group: Sequence[Draft]) -> None:
        with self.lock:
            self.gone.add(commit)
            for other in group:
                if other.parent in self.gone and other.commit in self.stops:
                    self.gone.add(other.commit)
                    self.stops[other.commit].set()

    def _ask(self, draft: Draft, stop: Event) -> None:
        steps = self.world.hooks
        candidate = self._candidate(draft)
        self._all(steps.plan, draft, candidate, stop)
        for step in steps.fixing:
            for verdict in self._all((step,), draft, candidate, stop):
                if verdict.fixed or verdict.message is not None:
                    with self.lock:
                        self._change(draft, step, verdict)
                    candidate = self._candidate(draft)
        self._all(steps.checking, draft, candidate, stop)

    def _all(
        self, steps: Sequence[Step], draft: Draft, candidate: HookInput, stop: Event
    ) -> list[Verdict]:
        """Ask hooks that do not depend on each other; `Refusal` if any of them refuses."""
        wanted = [step for step in steps if step.git or step.wants(candidate.paths)]
        if not wanted:
            return []

        def ask(step: Step) -> Verdict:
            return self.world.engine.ask(step, candidate, stop)

        verdicts = _together(ask, wanted, stop.set)
        draft.hooks += [verdict.run for verdict in verdicts]
        problems = [problem for verdict in verdicts for problem in verdict.problems]
        if problems:
            raise Refusal(*problems)
        return verdicts

    def _unwritten(self, commit: str) -> Objects:
        with self.lock:
            return self.world.repo.unwritten.needed([commit])

    def _change(self, draft: Draft, step: Step, verdict: Verdict) -> None:
        if self.as_it_stands and verdict.fixed:
            changed = ", ".join(sorted(verdict.fixed))
            raise Refusal(
                Problem(
                    "hook.refused",
                    f"the hook {step.id} would change {changed}, and the branch lands as it stands",
                    f"commit that change on {records.branch(draft.id)}, or discard the batch",
                )
            )
        if verdict.fixed:
            fixes.take(draft, step.id, verdict.fixed)
        elif verdict.message is not None and not self.as_it_stands:
            fixes.say(draft, verdict.message)

    def _candidate(self, draft: Draft) -> HookInput:
        repo = self.world.repo
        assert draft.commit
        assert draft.tree
        assert draft.parent
        with self.lock:
            return HookInput(
                id=draft.id,
                target=draft.target or "",
                base=draft.base.commit if draft.base else draft.parent,
                parent=draft.parent,
                parent_tree=repo.tree(draft.parent).root,
                commit=draft.commit,
                tree=draft.tree,
                paths=draft.paths,
                message=repo.message(draft.commit),
                plan=_plan(draft, self.world),
                lend=partial(self._unwritten, draft.commit),
            )


def _plan(draft: Draft, world: World) -> BatchDocument:
    """`patchq.plan/1` of a draft, or of a branch which is all that is known of one."""
    if draft.edits:
        return document.to_plan(draft.outcome())
    assert draft.parent
    assert draft.commit
    changes = world.repo.file_changes(draft.parent, draft.commit)
    before = draft.edits, draft.diff
    draft.edits, draft.diff = tuple(map(_as_edit, changes)), unified.unified(changes)
    try:
        return document.to_plan(draft.outcome())
    finally:
        draft.edits, draft.diff = before


def _as_edit(change: FileChange) -> EditOutcome:
    op = "delete_file" if change.after is None else "write" if change.before else "create"
    return EditOutcome(change.path, "git", (0, 0), change.path, op, "applied")


def _together(
    function: Callable[[T], R],
    items: Sequence[T],
    on_error: Callable[[], None],
    pulse: Callable[[], None] | None = None,
) -> list[R]:
    """The function's results for all items, worked out at the same time.  If one fails, `on_error`
    has the others end, and what failed first is raised; `pulse` is called each second meanwhile."""
    if len(items) == 1 and pulse is None:
        return [function(items[0])]
    with ThreadPoolExecutor(len(items)) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            while not _over(futures):
                wait(futures, _PULSE_SECONDS, return_when=FIRST_EXCEPTION)
                if pulse is not None:
                    pulse()
        finally:
            if not all(future.done() and not future.exception() for future in futures):
                on_error()
                wait(futures)
    errors = [error for future in futures if (error := future.exception())]
    errors.sort(key=lambda error: isinstance(error, Cancelled))
    if errors:
        raise errors[0]
    return [future.result() for future in futures]


def _over(futures: Sequence[Future[R]]) -> bool:
    """Whether all have ended, or one has failed."""
    ended = [future for future in futures if future.done()]
    return len(ended) == len(futures) or any(future.exception() for future in ended)
