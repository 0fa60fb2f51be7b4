"""Asking the hooks about candidates, many at once, before any of them lands.

Each candidate is built on those before it, and is checked so: the tree that lands is the tree that
the hooks saw.  When one of them is refused, or changed by a hook that fixes, those that were built
on it are dropped at once, to be decided again without it; all others keep their verdict.  What a
hook made of a candidate becomes part of the batch, through the same gate as its edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import EditOutcome, FileChange, Plan, Problem
from patchq.core.text import unified
from patchq.gate.errors import Cancelled, CannotSign, Fault, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.pipeline import mode, stages
from patchq.gate.pipeline.progress import CandidateCommit, Decision, crashed
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document, logs

if TYPE_CHECKING:  # who runs no hook imports nothing that runs hooks
    from patchq.gate.hooks.configured import Step
    from patchq.gate.hooks.engine import HookInput
    from patchq.gate.hooks.verdict import Fixed, Verdict
    from patchq.gate.hooks.warm import Objects


def take(
    decision: Decision, candidate: CandidateCommit, hook: str, fixed: Fixed, session: Session
) -> Decision:
    """The decision with the candidate made anew with the files as the hook left them, each named
    as an edit of the hook's; refused for what no response may do either."""
    changes = _changes(candidate, fixed, session)
    if not changes:
        problem = Problem(
            "hook.refused",
            f"the hook {hook} takes back everything that the batch changes",
            "send what the hook leaves as it is",
        )
        return decision.with_verdict("rejected", problem)
    before, known = decision.state, candidate.paths
    decision = stages.checked(decision, changes, candidate.parent, session)
    if not decision.lands:
        return _of_hook(decision, hook, fixed)
    paths = mode.touched(changes)
    decision = mode.ruled(
        decision,
        Plan(changes),
        tuple(path for path in paths if path not in known),
        candidate.target,
        candidate.parent,
        session,
    )
    if not decision.lands:
        return decision
    return replace(
        decision,
        state="proposed" if before == "proposed" else decision.state,
        candidate=_amended(
            candidate, changes, session.repo.message(candidate.commit), session, paths
        ),
        edits=(
            *decision.edits,
            *(
                EditOutcome(
                    f"{hook}:{number}",
                    "hook",
                    (0, 0),
                    path,
                    "write",
                    "applied",
                    description=f"by hook {hook}",
                )
                for number, path in enumerate(sorted(fixed), 1)
            ),
        ),
    )


def say(decision: Decision, candidate: CandidateCommit, message: str, session: Session) -> Decision:
    """The decision with the candidate made anew with another message; its trailers stay, whatever
    becomes of it."""
    repo = session.repo
    text = message.replace("\0", "").strip() + "\n"
    lines, before = text.split("\n"), repo.message(candidate.commit).split("\n")
    lost = [line for line in before if line.startswith("Patchq-") and line not in lines]
    text += "\n" + "\n".join(lost) + "\n" if lost else ""
    changes = repo.file_changes(candidate.parent, candidate.commit)
    return replace(
        decision,
        subject=text.split("\n", 1)[0],
        candidate=_amended(candidate, changes, text, session, candidate.paths),
    )


def _amended(
    candidate: CandidateCommit,
    changes: tuple[FileChange, ...],
    message: str,
    session: Session,
    paths: tuple[str, ...],
) -> CandidateCommit:
    commit, tree = session.repo.amend(
        candidate.commit, candidate.parent, changes, message, session.signer.signed
    )
    return replace(candidate, commit=commit, tree=tree, paths=paths)


def _changes(candidate: CandidateCommit, fixed: Fixed, session: Session) -> tuple[FileChange, ...]:
    """What the batch and the hook do to the parent's files, together."""
    changes = {
        change.path: change
        for change in session.repo.file_changes(candidate.parent, candidate.commit)
    }
    tree = session.repo.tree(candidate.parent)
    for path, made in fixed.items():
        entry = tree.entry(path)
        was_link = entry is not None and entry.kind == "link"
        before = tree.read(path) if entry and entry.kind in ("file", "link") else None
        after, executable = made if made else (None, False)
        same_mode = entry is None or made is None or entry.executable == executable
        if before == after and same_mode and not (was_link and made):
            changes.pop(path, None)
        elif made:
            turned = was_link or None
            changes[path] = FileChange(path, before, after, executable, was_link=turned)
        else:
            changes[path] = FileChange(path, before, after, executable, link=was_link)
    return tuple(changes[path] for path in sorted(changes))


def _of_hook(decision: Decision, hook: str, fixed: Fixed) -> Decision:
    """The refusal of a candidate for what a hook made of it: nothing in the response is wrong."""

    def told(problem: Problem) -> Problem:
        if problem.path in fixed and problem.code.startswith("path."):
            message = f"the hook {hook} changes what no batch may: {problem.message}"
            hint = "nothing to correct in the response: have the hook looked after"
            return Problem(problem.code, message, hint, path=problem.path)
        if problem.code == "response.too_large" and problem.path is None:
            message = f"with what the hook {hook} changes, {problem.message}"
            return replace(problem, message=message)
        return problem

    return replace(decision, problems=tuple(map(told, decision.problems)))


_PULSE_SECONDS = 1.0
T = TypeVar("T")
R = TypeVar("R")


def group_size(session: Session, usual: int) -> int:
    """How many batches are decided before they are checked: few, where a check takes its time."""
    if not session.hooks.parallel:
        return usual
    from patchq.gate.hooks.engine import processors

    return 2 * processors()


class Presubmit(Struct, frozen=True):
    """What the hooks leave of a group: the decisions that go on, and those that were built on one
    which does not land as it was, and are to be decided again."""

    kept: list[Decision]
    dropped: list[Decision]


def check(
    decisions: Sequence[Decision], session: Session, *, as_it_stands: bool = False
) -> Presubmit:
    """Ask the hooks about every commit that is to land, and refuse what they refuse.

    `as_it_stands`: hooks may not change the commit.  Raises `HookFault` if a hook cannot be
    started.
    """
    steps = session.hooks
    asked = {d.candidate.commit: d for d in decisions if d.candidate and d.lands}
    if not asked or not steps.before:
        return Presubmit(list(decisions), [])
    check = _Check(
        session,
        as_it_stands,
        {d.candidate.commit: d.candidate.parent for d in asked.values() if d.candidate},
        {commit: Event() for commit in asked},
    )
    made = (
        _together(check.one, list(asked.values()), check.stop_all, session.pulse)
        if steps.parallel
        else list(map(check.one, asked.values()))
    )
    after = {id(before): now for before, now in zip(asked.values(), made, strict=True)}
    return Presubmit(
        [after.get(id(d), d) for d in decisions if d.tip not in check.gone],
        [d for d in decisions if d.tip in check.gone],
    )


@dataclass
class _Check:
    """One group's check; `stops` has an event for each candidate that is to be dropped."""

    session: Session
    as_it_stands: bool
    parents: Mapping[str, str]
    """Of the group's commits, in their order."""
    stops: Mapping[str, Event]
    gone: set[str] = field(default_factory=set)
    """Commits that do not land."""
    lock: Lock = field(default_factory=Lock)
    """Held by whoever uses the repository."""

    def stop_all(self) -> None:
        for stop in self.stops.values():
            stop.set()

    def one(self, before: Decision) -> Decision:
        decision, commit = before, before.commit or ""
        try:
            with logs.about(before.id):
                for after in self._asked(before, self.stops[commit]):
                    decision = after
        except Cancelled:
            return before
        except CannotSign as fault:
            decision = decision.held(fault.message, fault.hint, fault.code)
        except ObjectDamaged as damage:
            decision = decision.damaged(damage)
        except Fault:
            raise
        except Exception as error:
            decision = crashed(decision, error)
        if decision.commit != commit:
            self._drop_those_on(commit)
        return decision

    def _drop_those_on(self, commit: str) -> None:
        with self.lock:
            self.gone.add(commit)
            for other, parent in self.parents.items():
                if parent in self.gone:
                    self.gone.add(other)
                    self.stops[other].set()

    def _asked(self, decision: Decision, stop: Event) -> Iterator[Decision]:
        """The decision after each round of hooks: those that look at the plan, each that may fix
        something, and those that check the result."""
        steps, asked = self.session.hooks, None
        fixing = (((step,), step) for step in steps.fixing)
        for group, fixer in ((steps.plan, None), *fixing, (steps.checking, None)):
            candidate = decision.candidate
            if candidate is None:
                return
            asked = asked or self._candidate(decision, candidate)
            wanted = [step for step in group if step.git or step.wants(asked.paths)]
            ask = partial(self._verdict, candidate=asked, stop=stop)
            verdicts = _together(ask, wanted, stop.set) if wanted else []
            decision = replace(
                decision, hooks=(*decision.hooks, *(verdict.run for verdict in verdicts))
            )
            problems = [problem for verdict in verdicts for problem in verdict.problems]
            if problems:
                decision = decision.with_verdict("rejected", *problems)
            elif fixer and verdicts and (verdicts[0].fixed or verdicts[0].message is not None):
                with self.lock:
                    decision = self._changed(decision, candidate, fixer, verdicts[0])
                asked = None
            yield decision

    def _verdict(self, step: Step, candidate: HookInput, stop: Event) -> Verdict:
        with self.session.doing(candidate.id, "checking", step.id):
            return self.session.engine().ask(step, candidate, stop)

    def _unwritten(self, commit: str) -> Objects:
        with self.lock:
            return self.session.repo.unwritten.needed([commit])

    def _changed(
        self, decision: Decision, candidate: CandidateCommit, step: Step, verdict: Verdict
    ) -> Decision:
        if self.as_it_stands and verdict.fixed:
            changed = ", ".join(sorted(verdict.fixed))
            return decision.with_verdict(
                "rejected",
                Problem(
                    "hook.refused",
                    f"the hook {step.id} would change {changed}, and the branch lands as it stands",
                    f"commit that change on {records.branch(decision.id)}, or discard the batch",
                ),
            )
        if verdict.fixed:
            return take(decision, candidate, step.id, verdict.fixed, self.session)
        if verdict.message is not None and not self.as_it_stands:
            return say(decision, candidate, verdict.message, self.session)
        return decision

    def _candidate(self, decision: Decision, candidate: CandidateCommit) -> HookInput:
        """What the hooks are told."""
        from patchq.gate.hooks.engine import HookInput

        repo = self.session.repo
        with self.lock:
            if repo.promised is not None and self.session.hooks.parallel:
                repo.promised.complete(candidate.tree)
            return HookInput(
                id=decision.id,
                target=candidate.target,
                base=candidate.base,
                parent=candidate.parent,
                parent_tree=repo.tree(candidate.parent).root,
                commit=candidate.commit,
                tree=candidate.tree,
                paths=candidate.paths,
                message=repo.message(candidate.commit),
                plan=_plan(decision, candidate, self.session),
                lend=partial(self._unwritten, candidate.commit),
            )


def _plan(decision: Decision, candidate: CandidateCommit, session: Session) -> dict[str, Any]:
    """`patchq.plan/1` of a batch, or of a branch which is all that is known of one."""
    if not decision.edits:
        changes = session.repo.file_changes(candidate.parent, candidate.commit)
        decision = replace(
            decision, edits=tuple(map(_as_edit, changes)), diff=unified.unified(changes)
        )
    return document.to_plan(decision.outcome())


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
        running, failed = set(futures), False
        try:
            while running and not failed:
                done, running = wait(futures, _PULSE_SECONDS, return_when=FIRST_EXCEPTION)
                failed = any(future.exception() for future in done)
                if pulse is not None:
                    pulse()
        finally:
            if running or failed:
                on_error()
    errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, Cancelled))
    return [future.result() for future in futures]
