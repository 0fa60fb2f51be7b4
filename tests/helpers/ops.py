"""Edits of every form on the file at `PATH`, for tests that need no response."""

from __future__ import annotations

from msgspec.structs import replace

from patchq.core.model.ops import Op
from patchq.core.model.values import Edit, Plan
from patchq.core.plan import batch as apply
from patchq.core.plan.targets import PlanRules
from tests.helpers.trees import PATH, RULES, DictTree


def edit(op: Op, id: str = "1", format: str = "edit_calls", path: str = PATH) -> Edit:
    return Edit(id, format, (1, 1), path, op)


def batch(*ops: Op, format: str = "edit_calls", path: str = PATH) -> list[Edit]:
    return [edit(op, str(number), format, path) for number, op in enumerate(ops, 1)]


def plan(
    data: bytes | str | None,
    edits: list[Edit],
    rules: PlanRules = RULES,
    *,
    declared: bool = False,
    path: str = PATH,
) -> Plan:
    """What the edits do to the file; None: there is none."""
    tree = DictTree({} if data is None else {path: data})
    return apply.plan(edits, tree, rules, declared=declared)


def result(data: bytes | str, *ops: Op, declared: bool = False, path: str = PATH) -> str:
    """The file after the edits; the refusal's code, or `already`, or `same`."""
    done = plan(data, batch(*ops, path=path), declared=declared, path=path)
    if done.refused:
        return next(p.code for p in done.problems if p.severity == "error")
    if {outcome.state for outcome in done.edits} == {"already_applied"} and not done.changes:
        return "already"
    after = next((change.after for change in done.changes), None)
    return "same" if after is None else after.decode("utf-8", "surrogateescape")


def stating(edit: Edit, **said: object) -> Edit:
    """The edit with further statements (confidence, depends_on, fallback_of)."""
    return replace(edit, **said)
