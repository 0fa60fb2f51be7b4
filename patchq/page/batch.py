"""One batch: what it changes, why, and how sure that is; and the forms to decide on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from patchq.core.model.values import FileChange
from patchq.core.text.quote import decode
from patchq.gate.api import Gate, finding
from patchq.gate.pipeline import depends
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import CommentEntry, Report
from patchq.gate.review import comparison, rows
from patchq.gate.review.comparison import Comparison
from patchq.gate.review.rows import Cell, FileRows, Row
from patchq.page import colours
from patchq.page.decisions import FormResult, Preview
from patchq.page.shown import Shown

_MOST_ROWS = 3000
"""Of all files together; what is behind them is one fold."""
_LEAST_ROWS = 20
Place = tuple[str | None, int]
"""A side and a line of it."""


def view(gate: Gate, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """Return the change as it is now; `result` is why nothing was decided, or a preview."""
    session = gate.context()
    report, note = finding.seen(session, *finding.find(session, asked["id"]))
    found = comparison.compare(session, report)
    choice = result.choice if result else None
    stack = depends.under(session, report) if report.state == "proposed" else depends.Stack()
    values = {
        "report": report,
        "below": list(reversed(stack.ids)),
        "note": note,
        "commit": found.commit if found else None,
        "waits": report.state == "proposed" and found is not None,
        "risk": comparison.risk_of(session, report),
        "files": list(_files(report, found)) if found else [],
        "page": to_markdown(report, person=True),
        "problems": result.problems if result else (),
        "choice": choice,
        "ticked": _ticked(report, choice),
        "at": _place(asked),
        "written": result.written if result else "",
    }
    return Shown("batch.html", report.id, values)


def _ticked(report: Report, choice: Preview | None) -> frozenset[str]:
    edits = choice.edits if choice else report.edits
    return frozenset(edit.id for edit in edits if edit.state not in ("skipped", "cancelled"))


def _place(asked: Mapping[str, str]) -> dict[str, str] | None:
    """The line that a comment is to be about, where the browser runs no script."""
    names = ("path", "side", "line")
    return {name: asked[name] for name in names} if all(map(asked.get, names)) else None


def _files(report: Report, found: Comparison) -> Iterator[dict[str, Any]]:
    left = _MOST_ROWS
    for change in sorted(found.changes, key=lambda change: change.path):
        (file,) = rows.side_by_side(report, [change], found.since, most=max(_LEAST_ROWS, left))
        left -= len(file.rows)
        yield {"file": file, "rows": list(_rows(report, file, change))}


def _rows(report: Report, file: FileRows, change: FileChange) -> Iterator[dict[str, Any]]:
    """The rows with their cells as HTML; `starts` tells where another edit begins."""
    old = colours.lines(file.renamed_from or file.path, decode(change.before or b""))
    new = colours.lines(file.path, decode(change.after or b""))
    said = _said(report, file.path)
    before: tuple[str, ...] = ()
    for row in file.rows:
        yield {
            "row": row,
            "comments": [one for cell in _places(row) for one in said.get(cell, ())],
            "old": _cell(row, row.old, old),
            "new": _cell(row, row.new, new),
            "starts": bool(row.edits) and row.edits != before,
        }
        before = row.edits


def _said(report: Report, path: str) -> Mapping[Place, list[CommentEntry]]:
    """The comments on a file's lines, by their place."""
    said: dict[Place, list[CommentEntry]] = {}
    for one in report.review.comments if report.review else ():
        if one.path == path and one.line is not None:
            said.setdefault((one.side, one.line), []).append(one)
    return said


def _places(row: Row) -> Iterator[Place]:
    if row.kind != "fold":
        yield from (("base", row.old.line),) if row.old else ()
        yield from (("new", row.new.line),) if row.new else ()


def _cell(row: Row, cell: Cell | None, lines: tuple[tuple[colours.Run, ...], ...]) -> str:
    if cell is None or row.kind == "fold":
        return ""
    runs = lines[cell.line - 1] if cell.line <= len(lines) else ()
    return colours.marked(cell.text, runs, cell.marks)
