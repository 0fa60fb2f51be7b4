"""Ask the hooks before anything lands: about candidates by themselves, and about chains of them.

What a hook made of a candidate becomes part of the change, through the same gate as its edits.

Hooks judge trees, and every prefix of a chain, whose candidates are each built on the one before,
is a tree that can land.  So the end is asked about first: if it passes, all of it lands.  Else
halving finds the longest prefix that passes, and the member behind that is named, once its tree was
refused twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import EditOutcome, FileChange, HookRun, Problem
from patchq.core.text import unified
from patchq.gate.errors import Cancelled, CannotSign, Fault, ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.objects import EXECUTABLE, FILE, as_changes
from patchq.gate.pipeline import judge
from patchq.gate.pipeline.progress import Decision, crashed
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.shelf import DAY, FLAKY, Shelf
from patchq.gate.report import logs

if TYPE_CHECKING:  # who runs no hook imports nothing that runs hooks
    from patchq.gate.hooks.configured import Step, Steps
    from patchq.gate.hooks.engine import Fixed, HookInput, Verdict
    from patchq.gate.hooks.warm import Objects


def _with_files(decision: Decision, hook: str, fixed: Fixed, session: Session) -> Decision:
    """Return the decision with the files as the hook left them.

    Its commit is made anew, and each of the files is named as an edit of the hook.  It is refused
    for what no response may do either.
    """
    changes = _changes(decision, fixed, session)
    if not changes:
        problem = Problem(
            "hook.refused",
            f"the hook {hook} takes back everything that the change changes",
            "send what the hook leaves as it is",
        )
        return decision.with_verdict("rejected", problem)
    before, known = decision.state, decision.paths
    decision = judge.checked(decision, changes, session)
    if not decision.lands:
        return decision
    decision = judge.choose_mode(decision, changes, session, known=known)
    if not decision.lands:
        return decision
    by = f"by hook {hook}"
    edits = (
        EditOutcome(f"{hook}:{number}", "hook", (0, 0), path, "write", "applied", description=by)
        for number, path in enumerate(sorted(fixed), 1)
    )
    decision = _amended(decision, changes, session.repo.message(decision.commit), session)
    return replace(
        decision,
        state="proposed" if before == "proposed" else decision.state,
        edits=(*decision.edits, *edits),
        paths=judge.touched(changes),
    )


def _with_message(decision: Decision, message: str, session: Session) -> Decision:
    """The decision with its commit made anew with another message; its trailers stay, whatever
    becomes of it."""
    repo = session.repo
    text = message.replace("\0", "").strip() + "\n"
    lines, before = text.split("\n"), repo.message(decision.commit).split("\n")
    lost = [line for line in before if line.startswith("Patchq-") and line not in lines]
    text += "\n" + "\n".join(lost) + "\n" if lost else ""
    changes = repo.file_changes(decision.tip, decision.commit)
    return replace(_amended(decision, changes, text, session), subject=text.split("\n", 1)[0])


def _amended(
    decision: Decision, changes: tuple[FileChange, ...], message: str, session: Session
) -> Decision:
    commit, tree = session.repo.amend(
        decision.commit, decision.tip, changes, message, session.signer.signed
    )
    return replace(decision, commit=commit, tree=tree)


def _changes(decision: Decision, fixed: Fixed, session: Session) -> tuple[FileChange, ...]:
    repo, before = session.repo, session.repo.tree(decision.tip).root
    sides = dict(repo.changes(decision.tip, decision.commit))
    for path, made in fixed.items():
        after = made and (EXECUTABLE if made[1] else FILE, repo.keep_blob(made[0]))
        sides[path] = repo.leaf(before, path), after
    made_otherwise = {path: both for path, both in sorted(sides.items()) if both[0] != both[1]}
    return tuple(as_changes(made_otherwise, repo.raw))


_PULSE_SECONDS = 1.0
T = TypeVar("T")
R = TypeVar("R")


def check(
    decisions: Sequence[Decision],
    session: Session,
    steps: Steps | None = None,
    *,
    unchanged: bool = False,
) -> list[Decision]:
    """Return the decisions after each commit was shown to the hooks (all) by itself.

    `unchanged`: hooks may not change the commit.  Raises `HookFault` if a hook cannot be
    started.
    """
    steps = steps or session.hooks
    if not decisions or not steps.before:
        return list(decisions)
    each = _Check(session, steps, unchanged, Event(), Lock())
    if not steps.parallel:
        return list(map(each.one, decisions))
    return together(each.one, decisions, each.stop.set, session.pulse)


class _Check(Struct, frozen=True):
    """The hooks' judgement of commits by themselves; `lock` is held by who uses the repository."""

    session: Session
    steps: Steps
    unchanged: bool
    stop: Event
    lock: Lock

    def one(self, before: Decision) -> Decision:
        decision = before
        try:
            with logs.about(before.id):
                for after in self._asked(before):
                    decision = after
        except Cancelled:
            return before
        except CannotSign as fault:
            return decision.held(fault.message, fault.hint, fault.code)
        except ObjectDamaged as damage:
            return decision.damaged(damage)
        except Fault:
            raise
        except Exception as error:
            return crashed(decision, error)
        return decision

    def _asked(self, decision: Decision) -> Iterator[Decision]:
        """Yield the decision after each round of hooks: on the plan, fixing, and checking."""
        steps, asked = self.steps, None
        fixing = (((step,), step) for step in steps.fixes)
        for group, fixer in ((steps.pre_apply, None), *fixing, (steps.pre_commit, None)):
            if not decision.commit:
                return
            if asked is None:
                with self.lock:
                    asked = hook_input([decision], self.session, self.lock)
            verdicts = ask(group, asked, self.session, self.stop)
            runs = [run_on(verdict.run, [decision]) for verdict in verdicts]
            decision = replace(decision, hooks=(*decision.hooks, *runs))
            problems = [problem for verdict in verdicts for problem in verdict.problems]
            if problems:
                decision = decision.with_verdict("rejected", *problems)
            elif fixer and verdicts and (verdicts[0].fixed or verdicts[0].message is not None):
                with self.lock:
                    decision = self._changed(decision, fixer, verdicts[0])
                asked = None
            yield decision

    def _changed(self, decision: Decision, step: Step, verdict: Verdict) -> Decision:
        if self.unchanged and verdict.fixed:
            changed = ", ".join(sorted(verdict.fixed))
            return decision.with_verdict(
                "rejected",
                Problem(
                    "hook.refused",
                    f"the hook {step.hook.id} would change {changed}, and the branch lands as it "
                    "is",
                    f"commit that change on {records.branch(decision.id)}, or discard the change",
                ),
            )
        if verdict.fixed:
            return _with_files(decision, step.hook.id, verdict.fixed, self.session)
        if verdict.message is not None and not self.unchanged:
            return _with_message(decision, verdict.message, self.session)
        return decision


def ask(
    steps: Sequence[Step], candidate: HookInput, session: Session, stop: Event
) -> list[Verdict]:
    """Return the verdicts of the hooks for the candidate's files, run in parallel."""
    wanted = [step for step in steps if step.wants(candidate.paths)]

    def verdict(step: Step) -> Verdict:
        with session.doing(candidate.label, "checking", step.hook.id):
            return session.engine().ask(step, candidate, stop)

    return together(verdict, wanted, stop.set) if wanted else []


def run_on(run: HookRun, joined: Sequence[Decision]) -> HookRun:
    """Return the run with its tree, its tip and the batches joined before."""
    last = joined[-1]
    others = tuple(decision.id for decision in joined[:-1])
    return replace(run, tree=last.tree, tip=last.tip, others=others)


def hook_input(
    joined: Sequence[Decision], session: Session, lock: AbstractContextManager[Any]
) -> HookInput:
    """Return what hooks see of changes that were joined: from the first's parent to the last."""
    from patchq.gate.hooks.engine import HookInput

    repo, first, last = session.repo, joined[0], joined[-1]
    if session.hooks.parallel:
        repo.promised.complete(last.tree)

    def objects() -> Objects:
        with lock:
            return repo.buffer.needed([last.commit])

    return HookInput(
        id=" ".join(decision.id for decision in joined),
        target=last.target,
        base=last.base_commit if len(joined) == 1 else first.tip,
        parent=first.tip,
        parent_tree=repo.tree(first.tip).root,
        commit=last.commit,
        tree=last.tree,
        paths=tuple(sorted({path for one in joined for path in one.paths})),
        message=repo.message(last.commit),
        plan=_plan(joined, session),
        objects=objects,
    )


def _plan(joined: Sequence[Decision], session: Session) -> dict[str, Any]:
    decision, ids = joined[-1], [one.id for one in joined]
    if not decision.edits or len(joined) > 1:
        changes = session.repo.file_changes(joined[0].tip, decision.commit)
        edits, diff = tuple(map(_as_edit, changes)), unified.unified(changes)
        decision = replace(decision, id=" ".join(ids), edits=edits, diff=diff)
    return {**decision.hook_plan(), "batches": ids}


def _as_edit(change: FileChange) -> EditOutcome:
    op = "delete_file" if change.after is None else "write" if change.before else "create"
    return EditOutcome(change.path, "git", (0, 0), change.path, op, "applied")


def together(
    function: Callable[[T], R],
    items: Sequence[T],
    on_error: Callable[[], None],
    pulse: Callable[[], None] | None = None,
) -> list[R]:
    """Return the function's results for all items, worked out at the same time.

    If one fails, `on_error` has the others end, and what failed first is raised; `pulse` is called
    each second meanwhile.
    """
    if len(items) == 1 and pulse is None:
        return [function(items[0])]
    with ThreadPoolExecutor(len(items)) as pool:
        futures = [pool.submit(function, item) for item in items]
        running = set(futures)
        try:
            while running:
                done, running = wait(running, _PULSE_SECONDS, return_when=FIRST_EXCEPTION)
                if pulse is not None:
                    pulse()
                for future in done:
                    future.result()
        except BaseException:
            on_error()
            raise
    return [future.result() for future in futures]


_MOST_FLAKY = 1000  # refusals that are remembered for `status`


class TargetRed(Fault):
    """A target whose own tree the hooks refuse: no change is to blame."""

    code = "target.red"


class Trial(Struct, frozen=True):
    """One run of the hooks on a prefix of a chain."""

    size: int
    runs: tuple[HookRun, ...] = ()
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    damage: ObjectDamaged | None = None

    @property
    def passed(self) -> bool:
        return not self.problems and self.damage is None

    @property
    def asked(self) -> bool:
        """True if a hook ran: what passed before is known."""
        return any(run.seconds or run.exit for run in self.runs)


def _refusing(trial: Trial) -> set[str]:
    return {run.id for run in trial.runs if run.exit != 0}


@dataclass
class Search:
    chain: Sequence[Decision]
    session: Session
    begins: Callable[[int], None] = lambda first: None
    """Called before each run with the length of the prefix."""
    watch: Callable[[Trial], None] = lambda trial: None
    _lock: Lock = field(default_factory=Lock)

    def cleared(self, *, alone: bool = False) -> Iterator[list[Decision]]:
        """Yield the members in lists that land together, or a refused one alone.

        The order is kept.  Behind a refused one, or one that lands only at the second time, the
        rest is to be joined anew.  `alone`: there was never more than this one, so one refusal is
        enough.  Raises `TargetRed` if the target fails without any of them.
        """
        if not self.session.hooks.joined:
            yield list(self.chain)
            return
        passed, refused = 0, len(self.chain)
        last = self._asked([refused])[0]
        if last.passed:
            yield self._with_runs(0, last)
            return
        while refused - passed > 1:
            parts = self.session.config.train.parallel + 1
            step = (refused - passed) / parts
            sizes = {passed + max(1, round(part * step)) for part in range(1, parts)}
            trials = self._asked(sorted(size for size in sizes if size < refused))
            if good := [trial for trial in trials if trial.passed]:
                yield self._with_runs(passed, good[-1])
                passed = good[-1].size
            if bad := [trial for trial in trials if not trial.passed and trial.size > passed]:
                last, refused = bad[0], bad[0].size
        if not alone and last.damage is None:
            if not passed:
                self._check_target()
            again = self._asked_again(last)
            if again.passed:
                yield self._with_runs(passed, again, flaky=_refusing(last))
                return
            last = again
        yield [self._refused(passed, last)]

    def _asked(self, sizes: Sequence[int]) -> list[Trial]:
        """Return one trial for each of these lengths, made side by side."""
        inputs = [self._input(size) for size in sizes]
        self.begins(sizes[-1])
        stop = Event()
        trial = partial(self._trial, stop=stop)
        trials = together(
            trial, list(zip(sizes, inputs, strict=True)), stop.set, self.session.pulse
        )
        for one in trials:
            self.watch(one)
        return trials

    def _asked_again(self, refused: Trial) -> Trial:
        """Return another trial of the same tree, to find flaky hooks.

        A hook that was flaky in the last day is asked three times before a batch is refused.
        """
        flaky = Shelf(self.session.queue_root, FLAKY, _MOST_FLAKY)
        known = {key.partition(" ")[0] for key in flaky.all(time() - DAY)}
        for _ in range(1 if known.isdisjoint(_refusing(refused)) else 2):
            (trial,) = self._asked([refused.size])
            if trial.passed:
                for id in _refusing(refused):
                    flaky.put(f"{id} {refused.runs[0].tree}", b"")
                break
        return trial

    def _input(self, size: int) -> HookInput:
        whole = hook_input(self.chain[: size or None], self.session, self._lock)
        if size:
            return whole
        root = self.session.repo.tree(whole.parent).root
        return replace(whole, id=whole.target, commit=whole.parent, tree=root, objects=dict)

    def _trial(self, sized: tuple[int, HookInput], stop: Event) -> Trial:
        size, candidate = sized
        began = monotonic()
        try:
            verdicts = ask(self.session.hooks.joined, candidate, self.session, stop)
        except ObjectDamaged as damage:
            return Trial(size, damage=damage)
        return Trial(
            size,
            tuple(run_on(verdict.run, self.chain[: size or 1]) for verdict in verdicts),
            tuple(problem for verdict in verdicts for problem in verdict.problems),
            monotonic() - began,
        )

    def _check_target(self) -> None:
        (trial,) = self._asked([0])
        if not trial.problems or not (trial := self._asked_again(trial)).problems:
            return
        first = self.chain[0]
        raise TargetRed(
            f"{first.target} fails by itself at {first.tip[:12]}: {trial.problems[0].message}",
            "mend that; what is accepted waits until it moves",
        )

    def _with_runs(self, start: int, trial: Trial, flaky: Collection[str] = ()) -> list[Decision]:
        runs = [replace(run, flaky=run.id in flaky) for run in trial.runs]
        members = self.chain[start : trial.size]
        ids = [one.id for one in self.chain[: trial.size]]
        return [
            replace(
                one,
                hooks=(
                    *one.hooks,
                    *(replace(run, others=tuple(id for id in ids if id != one.id)) for run in runs),
                ),
            )
            for one in members
        ]

    def _refused(self, at: int, trial: Trial) -> Decision:
        decision = replace(self.chain[at], hooks=(*self.chain[at].hooks, *trial.runs))
        if trial.damage:
            return decision.damaged(trial.damage)
        problems = trial.problems
        if at:
            joined = f"joined to {at} other{'s' * (at > 1)}"
            problems = tuple(
                replace(
                    one,
                    message=one.message.replace("refused the change", f"refused it, {joined}", 1),
                )
                for one in problems
            )
        return decision.with_verdict("rejected", *problems)
