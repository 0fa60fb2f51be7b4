"""One change: its files, the reasons to look, and the forms to decide on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patchq.core.model.values import Problem
from patchq.gate.api import Gate
from patchq.gate.api.rows import ChangeRow
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.review.decide import Decided
from patchq.page import inbox
from patchq.page.decisions import WHOLE
from patchq.page.diff import Compared, FileDiff, Span, viewed_key
from patchq.page.shown import Shown

# Of all files' lines on the page; the files behind them are fetched when they are near.
_MOST_CHARACTERS = 120_000
_MOST_EDITS = 60  # edits up to which their table is there unasked


def view(
    gate: Gate,
    asked: Mapping[str, str],
    problems: Sequence[Problem] = (),
    choice: Decided | None = None,
) -> Shown:
    """Return the page of a change; `choice` previews the chosen edits."""
    row = gate.find(asked["id"])
    if not isinstance(row, ChangeRow):
        raise UsageError(f"{row.id} has no verdict yet", "look again in a moment")
    report = row.report
    shown = Compared(gate, report, asked.get("since", ""))
    files = _files(shown)
    before, after = inbox.neighbours(gate, report.id)
    ticked = (choice.report if choice else report).edits
    values = {
        "row": row,
        "report": report,
        "shown": shown,
        "waits": report.state == "proposed" and shown.found is not None,
        "below": list(reversed(gate.stack(report))),
        "lists_edits": choice is not None or len(report.edits) <= _MOST_EDITS or "edits" in asked,
        "files": files,
        "looked": _looked(shown) if shown.rounds and not shown.since else {},
        "comments": report.review.comments if report.review else (),
        "drafts": shown.drafts,
        "whole": WHOLE,
        "tree": tree({one.file.path: one for one in files}),
        "before": before,
        "after": after,
        "page": to_markdown(report, person=True),
        "problems": problems,
        "choice": choice,
        "ticked": {edit.id for edit in ticked if edit.state not in ("skipped", "cancelled")},
    }
    return Shown("batch.html", report.id, values)


def view_file(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return the page of one file of a change, or only one fold's lines."""
    report, path = gate.report(asked["id"]), asked.get("path", "")
    shown = Compared(gate, report, asked.get("since", ""))
    change = next((one for one in shown.changes if one.path == path), None)
    if change is None:
        raise UsageError(f"{report.id} changes no file {path}", "go back to the change")
    fold = _span(asked.get("from", ""), asked.get("to", ""))
    opened = _span(*asked.get("open", "").partition("-")[::2]) or fold
    diff = FileDiff(shown, change)
    body = diff.html(fold if "part" in asked else None, opened)
    return Shown("one_file.html", path, {"id": report.id, "diff": diff, "part": body})


def _span(first: str, last: str) -> Span | None:
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None


def _files(shown: Compared) -> list[FileDiff]:
    files = sorted((FileDiff(shown, one) for one in shown.changes), key=lambda one: one.order)
    room = _MOST_CHARACTERS
    for number, one in enumerate(files, 1):
        one.number = number
        if room > 0 and not one.is_folded:
            body = one.html()
            room -= len(body)
            one.body = body if room > -_MOST_CHARACTERS // 4 else None
        one.near = one.body is None and not one.is_folded
    return files


def _looked(shown: Compared) -> dict[str, int]:
    found: dict[str, int] = {}
    known = {key.partition(" ")[2] for key in shown.seen}
    wanted = {
        one.path for one in shown.changes if one.path in known and viewed_key(one) not in shown.seen
    }
    for number, earlier in enumerate(shown.rounds, 1) if wanted else ():
        compared = shown.gate.compare(earlier)
        for change in compared.changes if compared else ():
            if change.path in wanted and viewed_key(change) in shown.seen:
                found[change.path] = number
    return found


def tree(files: Mapping[str, object]) -> dict[str, Any]:
    """Return values by path as nested mappings, with `/` after folder names."""
    root: dict[str, Any] = {}
    for path, value in files.items():
        *folders, name = path.split("/")
        here = root
        for folder in folders:
            here = here.setdefault(f"{folder}/", {})
        here[name] = value
    return _joined(root)


def _joined(tree: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inside in sorted(tree.items(), key=lambda item: not item[0].endswith("/")):
        while isinstance(inside, dict) and len(inside) == 1 and next(iter(inside)).endswith("/"):
            ((folder, inside),) = inside.items()
            name += folder
        found[name] = _joined(inside) if name.endswith("/") else inside
    return found
