"""The pipeline's stage that asks a model, between resolving a batch and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Literal

from patchq.llm import escaping, quotes
from patchq.llm.questioner import Questioner
from patchq.llm.repair import PlannedBatch
from patchq.model.ops import halves
from patchq.model.values import Correction, Edit, EditOutcome, Parsed, Plan
from patchq.pipeline.draft import Draft
from patchq.plan import escapes
from patchq.resolve.readings import unescape


def run(draft: Draft, parsed: Parsed, plan: Plan) -> tuple[Parsed, Plan]:
    """The response's edits and their plan, corrected with the configured model's help where that
    makes them apply; else both as they are, with a warning if the model gave no answer.

    Tells the draft every correction of the plan, the program's own as well.
    """
    model, base = draft.world.model, draft.base
    assert base is not None
    report: tuple[Correction, ...] = ()
    if model is not None:
        began = perf_counter()
        cache, edits = draft.world.answers, draft.choice.of(parsed.edits)
        tree, declared = draft.world.repo.tree(base.commit), base.how == "declared"
        batch = PlannedBatch(edits, plan, tree, draft.world.rules, declared)
        questioner = Questioner(model, cache, draft.world.pulse)
        repair = (quotes if plan.refused else escaping).correct(batch, questioner)
        draft.problems += questioner.problems
        if repair is not None:
            by_id = {edit.id: edit for edit in repair.batch.edits}
            parsed = replace(parsed, edits=tuple(by_id.get(edit.id, edit) for edit in parsed.edits))
            plan, report = repair.batch.plan, repair.corrections
            for name in () if draft.choice.dry_run else questioner.used:
                cache.keep(name)
        if questioner.tried:
            draft.timed("model_ms", began)
    if not plan.refused:
        draft.corrections = (*report, *by_program(parsed.edits, plan.edits))
    return parsed, plan


def by_program(edits: Sequence[Edit], outcomes: Sequence[EditOutcome]) -> Iterator[Correction]:
    """What was unescaped: the halves that have escapes, of the edits that match only without."""
    by_id = {edit.id: edit for edit in edits}
    whats: tuple[Literal["old", "new"], ...] = ("old", "new")
    for outcome in outcomes:
        if outcome.match == escapes.RUNG and outcome.id in by_id:
            for what, half in zip(whats, halves(by_id[outcome.id].op), strict=True):
                data = half.encode("utf-8", "surrogateescape")
                if unescape(data) != data:
                    yield Correction(outcome.id, what, "program")
