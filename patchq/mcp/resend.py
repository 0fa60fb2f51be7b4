"""Arguments of `submit` that may follow a refusal: each edit on the file's real text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from patchq.core import formats
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.ops import Create, DeleteFile, InsertAt, Rename, ReplaceText, Write, halves
from patchq.core.model.values import Edit, EditOutcome, Envelope
from patchq.core.text.quote import fence
from patchq.gate.api import Gate
from patchq.gate.report.page import BASE_IN_DOUBT
from patchq.gate.report.schema import ProblemEntry, Report, waits_for_its_agent
from patchq.mcp.arguments import EXAMPLE

MAX_BYTES = 64 * 1024
# Codes of edits that no correction lets in.
_LEFT_OUT = ("path.denied", "path.filtered", "path.outside", "path.invalid", "file.")


def what_to_send(gate: Gate, report: Report, data: bytes | None) -> str:
    """Return what a caller of the tools sends after a refusal, or a send-back, as text."""
    arguments = _arguments(gate, report, data)
    shown = fence(json.dumps(arguments, ensure_ascii=False, indent=1), "json")
    if len(shown.encode()) > MAX_BYTES:
        shown = fence(json.dumps({**arguments, "edits": [EXAMPLE]}, indent=1), "json")
    good = [edit.id for edit in report.edits if edit.state == "ready"]
    kept = f" Edits that are good as they are: {', '.join(good[:100])}." if good else ""
    return (
        "Call `submit` with these arguments, once the `new` of every edit is right. `old` is the "
        f"text of the file at `base`; all edits are applied, or none.{kept}\n\n{shown}"
    )


def _arguments(gate: Gate, report: Report, data: bytes | None) -> dict[str, Any]:
    context = gate.context()
    codes = {problem.code for problem in report.problems}
    base = report.base.commit if report.base and not codes & BASE_IN_DOUBT else None
    if report.state != "rejected" or base is None:  # an answer begins on the target as it is
        base = context.branches.tip(report.target or context.target) or base
    edits = list(_edits(gate, report, data, base)) if data and base else []
    retried = report.id if context.queue.load(report.id) else report.retry.of
    known: dict[str, Any] = {"retries": retried, "base": base}
    if report.review and waits_for_its_agent(report):
        known["answers"] = [
            {"comment": one.id, "text": "YOUR WORDS"} for one in report.review.unresolved
        ]
    return {
        **{key: value for key, value in known.items() if value},
        "edits": edits or [EXAMPLE],
    }


def _edits(gate: Gate, report: Report, data: bytes, base: str) -> Iterator[Mapping[str, Any]]:
    tree, opened = gate.context().repo.tree(base), open_response(data)
    if not isinstance(opened, Envelope):
        return
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, opened.header, opened.first_line
    )
    wrong = {p.edit: p for p in report.problems if p.edit and p.severity == "error"}
    outcomes = {outcome.id: outcome for outcome in report.edits}
    for edit in parsed.edits:
        problem, outcome = wrong.get(edit.id), outcomes.get(edit.id)
        if problem and problem.code.startswith(_LEFT_OUT):
            continue
        entry = tree.entry(edit.path)
        text = tree.read(edit.path).decode("utf-8", "replace") if entry else None
        yield _edit(edit, text, problem, outcome)


def _edit(
    edit: Edit, text: str | None, problem: ProblemEntry | None, outcome: EditOutcome | None
) -> Mapping[str, Any]:
    op, path = edit.op, edit.path
    if isinstance(op, DeleteFile):
        return {"path": path, "delete": True}
    if isinstance(op, Rename):
        return {"path": path, "rename_to": op.to}
    if text is None or (isinstance(op, Create | Write) and not text):
        return {"path": path, "new": op.text if isinstance(op, Create | Write) else halves(op)[1]}
    if isinstance(op, Write):
        return {"path": path, "new": op.text}
    old, new = (op.text, op.text) if isinstance(op, Create) else halves(op)
    if old and problem is None and not isinstance(op, InsertAt):
        every = isinstance(op, ReplaceText) and op.count is None
        return {"path": path, "old": old, "new": new, **({"replace_all": True} if every else {})}
    lines = outcome.lines if outcome and outcome.lines else None
    first = problem.line if problem and problem.line else lines[0] if lines else 1
    if isinstance(op, InsertAt):
        kept = _once(text, max(op.line, 1) - 1, 1)
        return {"path": path, "old": kept, "new": kept + op.text}
    return {"path": path, "old": _once(text, first - 1, len(old.splitlines())), "new": new}


def _once(text: str, first: int, count: int) -> str:
    """Return the lines there, with as many round them as make them occur once in the text."""
    lines = text.splitlines(keepends=True)
    first = min(max(first, 0), max(len(lines) - 1, 0))
    last = min(first + max(count, 1), len(lines))
    while text.count(found := "".join(lines[first:last])) > 1 or not found.strip():
        if (first, last) == (0, len(lines)):
            break
        first, last = max(first - 1, 0), min(last + 1, len(lines))
    return found
