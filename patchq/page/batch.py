"""One change: its files, the reasons to look, and the forms to decide on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import FileChange
from patchq.gate.api import Gate
from patchq.gate.api.rows import ChangeRow
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report
from patchq.gate.review.comparison import Comparison
from patchq.page import inbox, pictures, tree
from patchq.page.decisions import FormResult, Preview
from patchq.page.diff import FileDiff, Span, link
from patchq.page.pictures import Picture
from patchq.page.shown import Shown

VIEWED, DRAFT = "viewed", "draft"  # kinds of marks
# The place of words on the whole change.
GENERAL = json.dumps(dict.fromkeys(("path", "side", "from", "line"), ""))
# Of all files' lines on the page; the files behind them are fetched when they are near.
_MOST_CHARACTERS = 180_000
_MOST_EDITS = 60  # edits up to which their table is there unasked
_MOST_CHANGED = 1500  # changed lines up to which a file is shown unasked


class FileView(Struct, frozen=True):
    """A file as the page shows it; `body` is None where it is fetched when asked for."""

    path: str
    what: str
    added: int
    deleted: int
    renamed_from: str | None
    one_sided: bool
    binary: bool
    sizes: str
    body: Markup | None
    href: str
    content: str = ""
    """A digest of both sides, under which a person's mark is kept."""
    viewed: bool = False
    pictures: Sequence[Picture] = ()
    near: bool = False
    """True of one that is fetched by itself when it is near the screen."""

    @property
    def lines(self) -> int:
        return self.added + self.deleted


def view(gate: Gate, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """Return the change as it is now; `result` is why a decision was not taken, or its preview."""
    row = _found(gate, asked["id"])
    report, found = row.report, gate.compare(row.report)
    choice = result.choice if result else None
    seen = gate.marks(VIEWED).of()
    files = list(_files(report, found, seen)) if found else []
    before, after = inbox.neighbours(gate, report.id)
    values = {
        "report": report,
        "below": list(reversed(gate.stack(report))),
        "note": row.note,
        "commit": found.commit if found else None,
        "waits": report.state == "proposed" and found is not None,
        "risk": row.risk,
        "report_problems": report.problems,
        "lists_edits": choice is not None or len(report.edits) <= _MOST_EDITS or "edits" in asked,
        "checks": _checks(report),
        "files": files,
        "viewed": sum(one.viewed for one in files),
        "drafts": [
            {**json.loads(place), "words": words}
            for place, words in gate.marks(DRAFT).of(report.id).items()
            if place != GENERAL
        ],
        "tree": tree.tree_of(_leaves(files)),
        "added": sum(one.added for one in files),
        "deleted": sum(one.deleted for one in files),
        "before": before,
        "after": after,
        "page": to_markdown(report, person=True),
        "problems": result.problems if result else (),
        "choice": choice,
        "ticked": _ticked(report, choice),
        "written": result.written if result else "",
        "drafted": gate.marks(DRAFT).of(report.id).get(GENERAL, ""),
    }
    return Shown("batch.html", report.id, values)


def _found(gate: Gate, id: str) -> ChangeRow:
    row = gate.find(id)
    if not isinstance(row, ChangeRow):
        raise UsageError(f"{id} has no verdict yet", "look again in a moment")
    return row


def view_file(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return one file of a change, with the asked lines of a fold, or these lines alone."""
    report = gate.report(asked["id"])
    path, opened = asked.get("path", ""), _span(asked, "from", "to")
    found = gate.compare(report)
    change = next((one for one in found.changes if one.path == path), None) if found else None
    if found is None or change is None:
        raise UsageError(f"{report.id} changes no file {path}", "go back to the change")
    diff = FileDiff(report, found, change, f"/batch/{report.id}")
    first, _, last = asked.get("fold", "").partition("-")
    if asked.get("part") and opened and first.isdecimal() and last.isdecimal():
        body = diff.unfolded((int(first), int(last)), opened)
    else:
        body = diff.html(opened)
    one = _viewed(diff, change, body)
    return Shown("one_file.html", path, {"id": report.id, "one": one, "part": body})


def _span(asked: Mapping[str, str], *names: str) -> Span | None:
    first, last = (asked.get(name, "") for name in names)
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None


def _files(report: Report, found: Comparison, seen: Mapping[str, str]) -> Iterator[FileView]:
    """Yield the files, generated ones last, with their lines as long as the page has room."""
    left = _MOST_CHARACTERS
    order = sorted(found.changes, key=lambda one: (tree.is_generated(one.path), one.path))
    for change in order:
        diff = FileDiff(report, found, change, f"/batch/{report.id}")
        content = digest(change)
        viewed = seen.get(change.path) == content
        large = diff.file.added + diff.file.deleted > _MOST_CHANGED
        body = None
        if left > 0 and not large and not viewed and not tree.is_generated(change.path):
            body = diff.html()
            left -= len(body)
            body = body if left > -_MOST_CHARACTERS // 4 else None
        one = _viewed(diff, change, body)
        near = body is None and not (large or viewed or tree.is_generated(change.path))
        yield replace(one, near=near, content=content, viewed=viewed)


def digest(change: FileChange) -> str:
    """Return a digest of both sides of a file's change."""
    sides = (sha256(one or b"").hexdigest() for one in (change.before, change.after))
    return "-".join(sides)


def _viewed(diff: FileDiff, change: FileChange, body: Markup | None) -> FileView:
    file = diff.file
    before, after = (len(one) if one is not None else 0 for one in (change.before, change.after))
    return FileView(
        path=file.path,
        what=file.what,
        added=file.added,
        deleted=file.deleted,
        renamed_from=file.renamed_from,
        one_sided=diff.one_sided,
        binary=file.binary,
        sizes=f"{before:,} → {after:,} bytes",
        body=body,
        href=link(diff.url, file.path),
        pictures=pictures.of(change),
    )


def _leaves(files: Sequence[FileView]) -> list[tree.TreeFile]:
    return [
        tree.TreeFile(one.path, one.path.split("/")[-1], number, one.added, one.deleted)
        for number, one in enumerate(files, 1)
    ]


def _checks(report: Report) -> str:
    failed = [hook.id for hook in report.hooks if hook.exit != 0]
    passed = [hook.id for hook in report.hooks if hook.exit == 0]
    if failed:
        return f"failed: {', '.join(failed)}"
    return f"passed: {', '.join(passed)}" if passed else "checks not run"


def _ticked(report: Report, choice: Preview | None) -> frozenset[str]:
    edits = choice.edits if choice else report.edits
    return frozenset(edit.id for edit in edits if edit.state not in ("skipped", "cancelled"))
