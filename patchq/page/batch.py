"""One change: its files, the reasons to look, and the forms to decide on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from markupsafe import Markup
from msgspec import Struct

from patchq.core.model.values import FileChange, Problem
from patchq.gate.api import Gate
from patchq.gate.api.rows import ChangeRow
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.review.decide import Decided
from patchq.gate.review.rows import FileRows
from patchq.page import drafts, inbox, tree
from patchq.page.diff import Compared, FileDiff, Span
from patchq.page.shown import Shown

VIEWED = "viewed"  # a kind of marks
# Of all files' lines on the page; the files behind them are fetched when they are near.
_MOST_CHARACTERS = 120_000
_MOST_EDITS = 60  # edits up to which their table is there unasked
_MOST_CHANGED = 1500  # changed lines up to which a file is shown unasked


class FileView(Struct, frozen=True):
    """A file as the page shows it; `body` is None where it is fetched when asked for."""

    number: int
    diff: FileDiff
    body: Markup | None
    key: str
    """The key of a person's mark on it, which lapses with either side."""
    viewed: bool
    near: bool
    """True of one that is fetched by itself when it is near the screen."""

    @property
    def file(self) -> FileRows:
        return self.diff.file


def view(
    gate: Gate,
    asked: Mapping[str, str],
    problems: Sequence[Problem] = (),
    choice: Decided | None = None,
) -> Shown:
    """Return the change as it is now; `choice` is what the chosen edits would land."""
    row = gate.find(asked["id"])
    if not isinstance(row, ChangeRow):
        raise UsageError(f"{row.id} has no verdict yet", "look again in a moment")
    report = row.report
    shown = Compared(gate, report, asked.get("since", ""))
    seen = gate.marks(VIEWED).of()
    files = list(_files(shown, seen))
    before, after = inbox.neighbours(gate, report.id)
    ticked = (choice.report if choice else report).edits
    values = {
        "row": row,
        "report": report,
        "shown": shown,
        "found": shown.found,
        "waits": report.state == "proposed" and shown.found is not None,
        "below": list(reversed(gate.stack(report))),
        "lists_edits": choice is not None or len(report.edits) <= _MOST_EDITS or "edits" in asked,
        "files": files,
        "looked": _looked(shown, seen) if shown.rounds and not shown.since else {},
        "comments": report.review.comments if report.review else (),
        "drafts": shown.drafts,
        "whole": drafts.WHOLE,
        "tree": tree.tree_of({one.file.path: one for one in files}),
        "before": before,
        "after": after,
        "page": to_markdown(report, person=True),
        "problems": problems,
        "choice": choice,
        "ticked": {edit.id for edit in ticked if edit.state not in ("skipped", "cancelled")},
    }
    return Shown("batch.html", report.id, values)


def view_file(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return one file of a change with the lines of a fold, or these lines alone."""
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


def _files(shown: Compared, seen: Mapping[str, str]) -> Iterator[FileView]:
    """Yield the files, their lines as long as the page has room.

    Last come generated files, and before them those that are no lines, or too many.
    """
    room = _MOST_CHARACTERS
    diffs = sorted((FileDiff(shown, change) for change in shown.changes), key=_order)
    for number, diff in enumerate(diffs, 1):
        key = viewed_key(diff.change)
        viewed = not shown.since and key in seen
        is_quiet = (viewed or tree.is_generated(diff.file.path)) and not diff.open_comments
        folded, body = is_quiet or _is_large(diff.file), None
        if room > 0 and not folded:
            body = diff.html()
            room -= len(body)
            body = body if room > -_MOST_CHARACTERS // 4 else None
        yield FileView(number, diff, body, key, viewed, near=body is None and not folded)


def _is_large(file: FileRows) -> bool:
    return file.added + file.deleted > _MOST_CHANGED


def _order(diff: FileDiff) -> tuple[bool, bool, str]:
    file = diff.file
    return tree.is_generated(file.path), file.binary or _is_large(file), file.path


def _looked(shown: Compared, seen: Mapping[str, str]) -> dict[str, int]:
    """Return the last round in which a person has viewed a file that they have not since."""
    found: dict[str, int] = {}
    known = {key.partition(" ")[2] for key in seen}
    keys = {one.path: viewed_key(one) for one in shown.changes}
    wanted = {path for path, key in keys.items() if key not in seen and path in known}
    for number, earlier in enumerate(shown.rounds, 1) if wanted else ():
        compared = shown.gate.compare(earlier)
        for change in compared.changes if compared else ():
            if change.path in wanted and viewed_key(change) in seen:
                found[change.path] = number
    return found


def viewed_key(change: FileChange) -> str:
    """Return the key of the mark that a person has viewed both sides of a file's change."""
    sides = (sha256(one or b"").hexdigest()[:20] for one in (change.before, change.after))
    return f"{'-'.join(sides)} {change.path}"
