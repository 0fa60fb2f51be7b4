"""The pipeline's stage that asks a model, between resolving a batch and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Literal

from patchq.llm import escaping, quotes
from patchq.llm.questions import Questioner
from patchq.llm.repair import PlannedBatch
from patchq.model.ops import halves
from patchq.model.values import Correction, Edit, EditOutcome, Plan
from patchq.pipeline.progress import Read
from patchq.plan import guards
from patchq.resolve.readings import unescape


def run(read: Read, plan: Plan) -> tuple[Read, Plan, tuple[Correction, ...]]:
    """The response's edits and their plan, corrected with the configured model's help where that
    makes them apply; else both as they are, with a warning if the model gave no answer.  With every
    correction of the plan, the program's own as well."""
    model = read.world.model
    corrections: tuple[Correction, ...] = ()
    if model is not None:
        began = perf_counter()
        cache, edits = read.world.answers, read.choice.among(read.parsed.edits)
        batch = PlannedBatch(edits, plan, read.tree, read.world.rules, read.declared)
        questioner = Questioner(model, cache, read.world.pulse)
        repair = (quotes if plan.refused else escaping).correct(batch, questioner)
        read = read.warned(*questioner.problems)
        if repair is not None:
            by_id = {edit.id: edit for edit in repair.batch.edits}
            edits = tuple(by_id.get(edit.id, edit) for edit in read.parsed.edits)
            read = replace(read, parsed=replace(read.parsed, edits=edits))
            plan, corrections = repair.batch.plan, repair.corrections
            for name in () if read.choice.dry_run else questioner.used:
                cache.keep(name)
        if questioner.tried:
            read = read.timed("model_ms", began)
    if plan.refused:
        return read, plan, ()
    return read, plan, (*corrections, *by_program(read.parsed.edits, plan.edits))


def by_program(edits: Sequence[Edit], outcomes: Sequence[EditOutcome]) -> Iterator[Correction]:
    """What was unescaped: the halves that have escapes, of the edits that match only without."""
    by_id = {edit.id: edit for edit in edits}
    whats: tuple[Literal["old", "new"], ...] = ("old", "new")
    for outcome in outcomes:
        if outcome.match == guards.RUNG and outcome.id in by_id:
            for what, half in zip(whats, halves(by_id[outcome.id].op), strict=True):
                data = half.encode("utf-8", "surrogateescape")
                if unescape(data) != data:
                    yield Correction(outcome.id, what, "program")
