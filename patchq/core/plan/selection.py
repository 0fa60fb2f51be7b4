"""Which edits of a batch count: by their confidence, by what cancels them, and as backups.

An edit below the threshold is left out.  One that depends on another is cancelled when that one is
applied.  A backup counts only where the edit that it backs up has no place; since a contextual edit
may turn out to be one by its span, those come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from msgspec.structs import replace

from patchq.core.model.ops import CONTEXTUAL, Op, ReplaceText, halves
from patchq.core.model.values import (
    Edit,
    EditOutcome,
    EditState,
    ErrorProblem,
    Hunk,
    WarningProblem,
    refusal,
)
from patchq.core.plan.files import File, outcome
from patchq.core.plan.targets import EditRefused
from patchq.core.resolve.ladder import Found, same_result
from patchq.core.text.lines import Text

_STANDS: frozenset[EditState] = frozenset({"applied", "already_applied"})
_RULES_OUT = _STANDS | {"cancelled"}  # what became of an edit whose backup is not needed


def is_by_number(text: Text, op: Op) -> bool:
    """Return True if only a number tells the place from others that are alike."""
    return (
        isinstance(op, ReplaceText)
        and op.at is not None
        and text.haystack.repeats(halves(op)[0].encode("utf-8", "surrogateescape"))
    )


def backed(edit: Edit, file: File, found: Found) -> str | None:
    """Return the indexed edit that makes every change of a contextual edit.

    The contextual edit is then its backup.
    """
    if edit.format != CONTEXTUAL or not found.hunks:
        return None
    runs = [run for run in found.runs if run]
    for name, others in file.indexed.items():
        if all(any(_alike(file.text, run, other) for other in others) for run in runs):
            return name
    return None


def _alike(text: Text, one: Sequence[Hunk], other: Sequence[Hunk]) -> bool:
    if one[-1].end < other[0].start or other[-1].end < one[0].start:
        return False
    return same_result(text, (one,), (other,))


class Cascade:
    """The edits of a batch, decided one after the other; `apply` raises `EditRefused`."""

    def __init__(
        self, edits: Sequence[Edit], threshold: float, apply: Callable[[Edit], EditOutcome]
    ) -> None:
        self.edits = edits
        self.threshold = threshold
        self.apply = apply
        self.by_id = {edit.id: edit for edit in edits if edit.fallback_of is None}
        self.backups = {edit.fallback_of: edit for edit in edits if edit.fallback_of is not None}
        self.done: dict[int, EditOutcome] = {}
        self.errors: dict[ErrorProblem, None] = {}
        self.warnings: list[WarningProblem] = []

    def run(self) -> list[EditOutcome]:
        """Decide every edit, and return the outcomes in the order of the edits."""
        todo = sorted(self.edits, key=lambda edit: edit.format == CONTEXTUAL)[::-1]
        waits = set[int]()
        while todo:
            now = todo.pop()
            first = [one for one in self._before(now) if id(one) not in self.done]
            if id(now) not in self.done and first and id(now) not in waits:
                waits.add(id(now))  # for those that it depends on, however many there are
                todo += [now, *reversed([one for one in first if id(one) not in waits])]
            elif id(now) not in self.done:
                self.done[id(now)] = self._decided(now)
        if self.edits and all(map(self._is_doubtful, self.edits)):
            self.errors = dict.fromkeys(map(refusal, self.warnings))
            self.warnings = []
        return [self.done[id(edit)] for edit in self.edits]

    def _is_doubtful(self, edit: Edit) -> bool:
        return edit.confidence is not None and edit.confidence < self.threshold

    def _before(self, edit: Edit) -> list[Edit]:
        """Return the edits that have to be decided before this one."""
        if self._is_doubtful(edit):
            return []
        needed = [self._named(name) for name in edit.depends_on]
        primary = self.by_id.get(edit.fallback_of) if edit.fallback_of else None
        return [*chain.from_iterable(needed), *([primary] if primary else [])]

    def _named(self, name: str) -> list[Edit]:
        return [edit for edit in (self.by_id.get(name), self.backups.get(name)) if edit]

    def _state(self, edit: Edit | None) -> EditState | None:
        outcome = self.done.get(id(edit))
        return outcome.state if outcome else None

    def _decided(self, edit: Edit) -> EditOutcome:
        if self._is_doubtful(edit):
            self.warnings.append(
                WarningProblem(
                    "edit.confidence",
                    f"edit {edit.id} states a confidence of {edit.confidence}, below the threshold "
                    f"of {self.threshold}",
                    "it is left out; state a higher confidence if you are sure",
                    edit=edit.id,
                    path=edit.path,
                )
            )
            return outcome(edit, "skipped")
        for name in edit.depends_on:
            if any(self._state(other) in _STANDS for other in self._named(name)):
                return outcome(edit, "cancelled", name)
        primary = self.by_id.get(edit.fallback_of) if edit.fallback_of else None
        if primary and self._state(primary) in _RULES_OUT:
            return outcome(edit, "skipped", edit.fallback_of)
        try:
            return self.apply(edit)
        except EditRefused as refused:
            backup = self.backups.get(edit.id) if edit.fallback_of is None else None
            if backup is not None and not self._is_doubtful(backup):
                return outcome(edit, "skipped")
            self.errors[replace(refused.problem, edit=refused.problem.edit or edit.id)] = None
            self.warnings += [refused.note] if refused.note else []
            return outcome(edit, "failed")
