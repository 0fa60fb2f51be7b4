"""The cases of a kind: a task in a form, rewritten, with what may come of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bench.corpus.rewrites.forms import Form
from bench.corpus.rewrites.registry import Brief, Files, Kind, Outcome, Rewrite
from bench.corpus.rewrites.tasks import Task, is_sound, losses

ROUNDS = 8
"""How often each task is tried."""


@dataclass(frozen=True, slots=True)
class Case:
    """A rewrite of a task in a form; the files are all there are."""

    kind: Kind
    brief: Brief
    rewrite: Rewrite

    @property
    def before(self) -> Files:
        return self.brief.task.before if self.rewrite.before is None else self.rewrite.before

    @property
    def tip(self) -> Files:
        """The files of the branch as the response finds it."""
        return self.before if self.rewrite.tip is None else self.rewrite.tip

    @property
    def after(self) -> Files:
        """The files as they are to be, where they may change at all."""
        return self.brief.task.result() if self.rewrite.after is None else self.rewrite.after

    @property
    def allowed(self) -> frozenset[Outcome]:
        return self.rewrite.allowed

    @property
    def is_sound(self) -> bool:
        """Whether what it may land breaks no file; a task itself never does."""
        rewrite = self.rewrite
        own = rewrite.before is None and rewrite.after is None
        return own or "exact" not in self.allowed or is_sound(self.before, self.after)

    def outcome_of(self, landed: Files, named: int) -> Outcome:
        """What a result is that has landed, or would, where the report names so many edits."""
        if landed == self.after and "exact" in self.allowed:
            return "exact"
        partial = [self.tip, *self.rewrite.losses]
        partial += losses(self.brief.task.before, self.brief.changes)
        held = len(self.brief.changes) + self.rewrite.extra
        return "lost" if named < held and landed in partial else "wrong"


def cases_of(
    kind: Kind,
    forms: Sequence[Form],
    tasks: Sequence[Task],
    most: int,
    seed: int,
    root: str,
    least: int = 0,
) -> Iterator[Case]:
    """Up to `most` cases of a kind for each form that can express it, from tasks at random; then
    further ones, a form after the other, until there are at least `least`."""
    found = 0
    further = []
    for form in forms:
        cases = _cases(kind, form, tasks, seed, root)
        own = list(islice(cases, most))
        found += len(own)
        further.append(cases)
        yield from own
    while further and found < least:
        for cases in list(further):
            case = next(cases, None) if found < least else None
            if case:
                found += 1
                yield case
            else:
                further.remove(cases)


def _cases(kind: Kind, form: Form, tasks: Sequence[Task], seed: int, root: str) -> Iterator[Case]:
    """The different cases of a kind in a form: where chance writes a part of them, a task may give
    several."""
    dice = random.Random(f"{seed} {kind.name} {form.name}")
    seen: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        before = len(seen)
        for task in dice.sample(tasks, len(tasks)):
            if not form.fits(task):
                continue
            brief = Brief(task, form, dice, root)
            rewrite = kind.write(brief)
            if not rewrite or (task.name, rewrite.response) in seen:
                continue
            case = Case(kind, brief, rewrite)
            if not case.is_sound:
                continue
            seen.add((task.name, rewrite.response))
            yield case
        if len(seen) == before:
            return
