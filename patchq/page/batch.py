"""One change: its files, the reasons to look, and the forms to decide on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import FileChange
from patchq.gate.api import Gate, words
from patchq.gate.api.rows import ChangeRow
from patchq.gate.errors import UsageError
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import CommentEntry, Report
from patchq.gate.review.decide import Decided
from patchq.gate.review.rows import FileRows
from patchq.page import inbox, tree
from patchq.page.decisions import FormResult, place_of
from patchq.page.diff import FileDiff, Span
from patchq.page.shown import Shown

VIEWED, DRAFT = "viewed", "draft"  # kinds of marks
# The place of words on the whole change.
GENERAL = place_of()
# Of all files' lines on the page; the files behind them are fetched when they are near.
_MOST_CHARACTERS = 120_000
_MOST_EDITS = 60  # edits up to which their table is there unasked
_MOST_CHANGED = 1500  # changed lines up to which a file is shown unasked


class FileView(Struct, frozen=True):
    """A file as the page shows it; `body` is None where it is fetched when asked for."""

    diff: FileDiff
    body: Markup | None
    content: str
    """A digest of both sides, under which a person's mark is kept."""
    viewed: bool
    in_conflict: bool
    near: bool
    """True of one that is fetched by itself when it is near the screen."""

    @property
    def file(self) -> FileRows:
        return self.diff.file


def view(gate: Gate, asked: Mapping[str, str], result: FormResult | None = None) -> Shown:
    """Return the change as it is now; `result` is why a decision was not taken, or its preview."""
    row = _found(gate, asked["id"])
    report, choice = row.report, result.choice if result else None
    shown = _Compared(gate, report, asked.get("since", ""))
    found = shown.found
    seen, drafts = gate.marks(VIEWED).of(), gate.marks(DRAFT).of(report.id)
    waits = report.state == "proposed" and found is not None
    files = list(_files(shown, seen))
    before, after = inbox.neighbours(gate, report.id)
    comments = report.review.comments if report.review else ()
    values = {
        "report": report,
        "below": list(reversed(gate.stack(report))),
        "note": row.note,
        "commit": found.commit if found else None,
        "waits": waits,
        "risk": row.risk,
        "lists_edits": choice is not None or len(report.edits) <= _MOST_EDITS or "edits" in asked,
        "checks": words.checks_of(row),
        "files": files,
        "rounds": shown.rounds,
        "since": shown.since,
        "looked": _looked(shown, seen) if shown.rounds and not shown.since else {},
        "viewed": sum(one.viewed for one in files),
        "threads": [one for one in comments if one.line is None],
        "placed": [one for one in comments if one.line is not None],
        "open": sum(one.state == "open" for one in comments),
        "drafts": [
            {**json.loads(place), "words": text}
            for place, text in drafts.items()
            if place != GENERAL
        ],
        "tree": tree.tree_of(_leaves(files, comments)),
        "added": sum(one.file.added for one in files),
        "deleted": sum(one.file.deleted for one in files),
        "before": before,
        "after": after,
        "page": to_markdown(report, person=True),
        "problems": result.problems if result else (),
        "choice": choice,
        "ticked": _ticked(report, choice),
        "written": (result.written if result else "") or drafts.get(GENERAL, ""),
    }
    return Shown("batch.html", report.id, values)


def _found(gate: Gate, id: str) -> ChangeRow:
    row = gate.find(id)
    if not isinstance(row, ChangeRow):
        raise UsageError(f"{id} has no verdict yet", "look again in a moment")
    return row


class _Compared:
    """A change beside its target, or beside an earlier round by its number (`since`)."""

    def __init__(self, gate: Gate, report: Report, since: str) -> None:
        self.gate, self.report = gate, report
        self.rounds = gate.rounds(report)
        self.since = int(since) if since.isdecimal() and 0 < int(since) <= len(self.rounds) else 0
        if self.since:
            self.found = gate.since(report, self.rounds[self.since - 1])
            self.report = _without_base(report)
        else:
            self.found = gate.compare(report)
        self.changes = self.found.changes if self.found else ()

    def diff(self, change: FileChange) -> FileDiff:
        """Return what writes the change of one of the files."""
        lines = self.found.since if self.found else {}
        return FileDiff(self.report, lines, change, f"/batch/{self.report.id}", self.since)


def _without_base(report: Report) -> Report:
    """Return the report without what is about lines of its base, which are not shown."""
    review = report.review
    if review is not None:
        new = [one for one in review.comments if one.side != "base"]
        review = replace(review, comments=new)
    return replace(report, edits=(), review=review)


def view_file(gate: Gate, asked: Mapping[str, str]) -> Shown:
    """Return one file of a change, with the asked lines of a fold, or these lines alone."""
    report = gate.report(asked["id"])
    path, opened = asked.get("path", ""), _span(asked, "from", "to")
    shown = _Compared(gate, report, asked.get("since", ""))
    change = next((one for one in shown.changes if one.path == path), None)
    if change is None:
        raise UsageError(f"{report.id} changes no file {path}", "go back to the change")
    diff = shown.diff(change)
    first, _, last = asked.get("fold", "").partition("-")
    if asked.get("part") and opened and first.isdecimal() and last.isdecimal():
        body = diff.unfolded((int(first), int(last)), opened)
    else:
        body = diff.html(opened)
    return Shown("one_file.html", path, {"id": report.id, "diff": diff, "part": body})


def _span(asked: Mapping[str, str], *names: str) -> Span | None:
    first, last = (asked.get(name, "") for name in names)
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None


def _files(shown: _Compared, seen: Mapping[str, str]) -> Iterator[FileView]:
    """Yield the files, their lines as long as the page has room.

    Last come generated files, and before them those that are no lines, or too many.
    """
    room = _MOST_CHARACTERS
    conflicts = shown.found.conflicts if shown.found else ()
    diffs = {change.path: shown.diff(change) for change in shown.changes}
    for path, diff in sorted(diffs.items(), key=_order):
        content = digest(diff.change)
        viewed = not shown.since and viewed_key(path, content) in seen
        large = diff.file.added + diff.file.deleted > _MOST_CHANGED
        is_quiet = (viewed or tree.is_generated(path)) and not diff.is_discussed
        body = None
        if room > 0 and not large and not is_quiet:
            body = diff.html()
            room -= len(body)
            body = body if room > -_MOST_CHARACTERS // 4 else None
        near = body is None and not large and not is_quiet
        yield FileView(diff, body, content, viewed, path in conflicts, near)


def _order(item: tuple[str, FileDiff]) -> tuple[bool, bool, str]:
    path, file = item[0], item[1].file
    unseen = file.binary or file.added + file.deleted > _MOST_CHANGED
    return tree.is_generated(path), unseen, path


def _looked(shown: _Compared, seen: Mapping[str, str]) -> dict[str, int]:
    """Return the last round in which a person has viewed a file that they have not since."""
    found: dict[str, int] = {}
    now = {one.path: viewed_key(one.path, digest(one)) for one in shown.changes}
    known = {key.partition(" ")[2] for key in seen}
    wanted = {path for path, key in now.items() if key not in seen and path in known}
    for number, earlier in enumerate(shown.rounds, 1) if wanted else ():
        compared = shown.gate.compare(earlier)
        for change in compared.changes if compared else ():
            if change.path in wanted and viewed_key(change.path, digest(change)) in seen:
                found[change.path] = number
    return found


def viewed_key(path: str, content: str) -> str:
    """Return the key of the mark that a person has viewed a file with that content."""
    return f"{content} {path}"


def digest(change: FileChange) -> str:
    """Return a digest of both sides of a file's change."""
    sides = (sha256(one or b"").hexdigest()[:20] for one in (change.before, change.after))
    return "-".join(sides)


def _leaves(files: Sequence[FileView], comments: Sequence[CommentEntry]) -> list[tree.TreeFile]:
    many = Counter(one.path for one in comments if one.state != "resolved")
    return [
        tree.TreeFile(number, one.file, many[one.file.path]) for number, one in enumerate(files, 1)
    ]


def _ticked(report: Report, choice: Decided | None) -> frozenset[str]:
    edits = (choice.report if choice else report).edits
    return frozenset(edit.id for edit in edits if edit.state not in ("skipped", "cancelled"))
