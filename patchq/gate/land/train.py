"""Trains: a chain of candidates, each built on the one before, lands by few runs of the hooks.

Hooks judge trees, and every prefix of the chain is a tree that can land.  So the end is asked about
first: if it passes, all of it lands.  Else halving finds the longest prefix that passes, and the
member behind that is named, once its tree was refused twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from time import monotonic, time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import HookRun, Problem
from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.land.presubmit import ask, hook_input, run_on, together
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Session
from patchq.gate.queue.shelf import DAY, FLAKY, Shelf

if TYPE_CHECKING:  # who runs no hook imports nothing that runs hooks
    from patchq.gate.hooks.engine import HookInput


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
        """Yield the members in order, in lists that land together, or a refused one by itself.

        Behind a refused one, or one that lands only at the second time, the rest is to be joined
        anew.  `alone`: there was never more than this one, so one refusal is enough.  Raises
        `TargetRed` if the target fails without any of them.
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
        """Return another trial of the same tree, or if that is refused as well, perhaps a third.

        A hook that was flaky in the last day is asked three times before anybody is named.
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
        """Return what the hooks see of a prefix; if that is empty, of the target itself."""
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
        """Raise `TargetRed` if the hooks refuse the tree that the chain is built on."""
        (trial,) = self._asked([0])
        if not trial.problems or not (trial := self._asked_again(trial)).problems:
            return
        first = self.chain[0]
        raise TargetRed(
            f"{first.target} fails by itself at {first.tip[:12]}: {trial.problems[0].message}",
            "mend that; what is accepted waits until it moves",
        )

    def _with_runs(self, start: int, trial: Trial, flaky: Collection[str] = ()) -> list[Decision]:
        """Return the members from `start` to the trial's end, with its runs."""
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
        """Return the member at the trial's end, refused for what the hooks say."""
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
