"""The cases of a kind: a task in a form, rewritten, with what may come of it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.corpus.rewrites.forms import Form
from bench.corpus.rewrites.registry import Brief, Files, Kind, Outcome, Rewrite
from bench.corpus.rewrites.tasks import Task, is_sound, losses

_FENCE = re.compile(r"^\s*(`{3}|~{3})|^(END )?FILE\b", re.MULTILINE)


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
    def after(self) -> Files:
        """The files as they are to be, where they may change at all."""
        return self.brief.task.result() if self.rewrite.after is None else self.rewrite.after

    @property
    def allowed(self) -> frozenset[Outcome]:
        return self.rewrite.allowed

    def outcome_of(self, landed: Files) -> Outcome:
        """What a result is that has landed, or would."""
        if landed == self.after and "exact" in self.allowed:
            return "exact"
        partial = [*self.rewrite.losses, *losses(self.brief.task.before, self.brief.changes)]
        return "lost" if landed in partial else "wrong"


def cases_of(
    kind: Kind, forms: Sequence[Form], tasks: Sequence[Task], most: int, seed: int, root: str
) -> Iterator[Case]:
    """Up to `most` cases of a kind for each form that can express it, from tasks at random."""
    for form in forms:
        dice = random.Random(f"{seed} {kind.name} {form.name}")
        left = most
        for task in dice.sample(tasks, len(tasks)):
            if not left:
                break
            brief = Brief(task, form, dice, root)
            if not _fits(form, task) or not (rewrite := kind.write(brief)):
                continue
            case = Case(kind, brief, rewrite)
            if "exact" in case.allowed and not is_sound(case.before, case.after):
                continue
            left -= 1
            yield case


def _fits(form: Form, task: Task) -> bool:
    """Whether a form can express a task; as whole files, where none is deleted or has a fence."""
    if form.family != "files":
        return form.fits(task)
    deletes = any(change.new is None for change in task.changes)
    return not deletes and not any(_FENCE.search(file.new or "") for file in task.whole_files())
