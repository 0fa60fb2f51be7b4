"""A file's change as HTML: one markup, which the style sheet lays out in one column or in two.

Each line is one element with its side and number; the deleted lines of a run come before the added
ones.  Empty elements keep lines beside each other that belong together.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import accumulate, groupby, pairwise
from posixpath import splitext
from urllib.parse import urlencode

from markupsafe import Markup, escape
from msgspec.structs import replace

from patchq.core.model.values import FileChange
from patchq.core.text.binary_patch import blob_id
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import decode
from patchq.gate.api import Gate
from patchq.gate.errors import UsageError
from patchq.gate.report.schema import CommentEntry, Report
from patchq.gate.review import rows
from patchq.gate.review.rows import Cell, Row
from patchq.page import decisions
from patchq.page.decisions import DraftPlace
from patchq.page.shown import part

_STEP = 20  # lines that one press of a fold's button shows
_LEAST_FOLD = 4
_LONGEST = 2000  # characters of a line that are shown unasked
_MOST_CHANGED = 1500  # changed lines up to which a file is shown unasked
_GENERATED = re.compile(
    r"(^|/)(vendor|node_modules|third_party|dist)/|\.(lock|min\.js|min\.css|map|snap)$"
    r"|(^|/)(package-lock\.json|pnpm-lock\.yaml|go\.sum|Cargo\.lock)$|_pb2\.py$|\.pb\.go$"
)
VIEWED = "viewed"  # a kind of marks

Span = tuple[int, int]  # first and last line of the new side, counted from 1


class Compared:
    """A change beside its target, or beside an earlier round by its number (`since`)."""

    def __init__(self, gate: Gate, report: Report, since: str) -> None:
        self.gate, self.report, self.url = gate, report, f"/batch/{report.id}"
        context = gate.context()
        self.rounds = rows.rounds(context, report)
        self.since = int(since) if since.isdecimal() and 0 < int(since) <= len(self.rounds) else 0
        if self.since:
            self.found = rows.since(context, report, self.rounds[self.since - 1])
            self.report = _without_base(report)
        else:
            self.found = rows.compare(context, report)
        self.changes = self.found.changes if self.found else ()
        self.seen = gate.marks(VIEWED).all()
        self.drafts = decisions.drafts_of(gate, report.id)

    def reply(self, comment: CommentEntry) -> str:
        return self.drafts.get(DraftPlace(thread=comment.id), "")


def _without_base(report: Report) -> Report:
    review = report.review
    if review is not None:
        new = [one for one in review.comments if one.side != "base"]
        review = replace(review, comments=new)
    return replace(report, edits=(), review=review)


def viewed_key(change: FileChange) -> str:
    """Return the key of a person's mark that they viewed a file.

    It changes with either side of the file, so that the mark lapses.
    """
    sides = (sha256(one or b"").hexdigest()[:20] for one in (change.before, change.after))
    return f"{'-'.join(sides)} {change.path}"


class FileDiff:
    """The change of one file, written as HTML when asked."""

    number = 0
    body: Markup | None = None
    near = False
    """True if the body is fetched when it is near the screen."""

    def __init__(self, shown: Compared, change: FileChange) -> None:
        self._shown, self.change, self.key = shown, change, viewed_key(change)
        self.viewed = not shown.since and self.key in shown.seen
        since = shown.found.since if shown.found else {}
        (self.file,) = rows.side_by_side(shown.report, [change], since)
        file, review = self.file, shown.report.review
        comments = review.comments if review else ()
        self.comments = [one for one in comments if one.path == change.path]
        self.open_comments = sum(one.state != "resolved" for one in self.comments)
        generated = bool(_GENERATED.search(file.path))
        large = file.added + file.deleted > _MOST_CHANGED
        self.order = generated, file.binary or large, file.path
        self.is_folded = large or ((self.viewed or generated) and not self.open_comments)
        self.has_one_side = file.what in ("created", "deleted")
        self.pictures = pictures_of(change)

    @property
    def what(self) -> str:
        """Return the kind of change, or a rename's similarity, with any new mode."""
        file, change, bits = self.file, self.change, {True: "755", False: "644"}
        whole = sum(len(split_lines(one or b"")) for one in (change.before, change.after))
        alike = 100 * (whole - file.added - file.deleted) // max(1, whole)
        what = f"{alike} % alike" if file.renamed_from else file.what
        if change.was_executable is None:
            return what
        return f"{what}, mode {bits[change.was_executable]} → {bits[change.executable]}"

    @property
    def sizes(self) -> str:
        return f"{len(self.change.before or b''):,} → {len(self.change.after or b''):,} bytes"

    @property
    def address(self) -> str:
        return f"{self._shown.url}/file?{urlencode(self._fields)}"

    @property
    def _fields(self) -> dict[str, str]:
        since = {"since": str(self._shown.since)} if self._shown.since else {}
        return {"path": self.file.path, **since}

    def html(self, within: Span | None = None, opened: Span | None = None) -> Markup:
        """Return the lines `within`, or all, with unchanged ones folded except those `opened`."""
        lines = [row for row in self.file.rows if within is None or _is_in(row, within)]
        kept = [row.kind != "same" or bool(self._comments_on(row)) for row in lines]
        shown = [
            is_near or (opened is not None and _is_in(row, opened))
            for row, is_near in zip(lines, rows.near(kept), strict=True)
        ]
        parts: list[Markup] = []
        for is_shown, group in groupby(zip(shown, lines, strict=True), lambda pair: pair[0]):
            some = [row for _, row in group]
            if is_shown or len(some) < _LEAST_FOLD:
                parts += self._blocks(some)
            else:
                parts.append(self._fold(some))
        return Markup("").join(parts)

    def _blocks(self, lines: Iterable[Row]) -> Iterator[Markup]:
        before: tuple[str, ...] = ()
        for (same, edits), group in groupby(lines, lambda row: (row.kind == "same", row.edits)):
            run: list[Row] = []
            label = edits if edits != before else ()
            before = edits
            for row in group:
                run.append(row)
                if comments := self._comments_on(row):
                    yield self._block(run, label, same=same)
                    yield from map(self._thread, comments)
                    run, label = [], ()
            if run:
                yield self._block(run, label, same=same)

    def _thread(self, comment: CommentEntry) -> Markup:
        shown = self._shown
        waits = shown.report.state == "proposed"
        return part("thread", comment, shown.url, waits, shown.reply(comment))

    def _comments_on(self, row: Row) -> list[CommentEntry]:
        return [one for one in self.comments if _is_on(one, row)]

    def _block(self, run: Sequence[Row], label: Sequence[str], *, same: bool) -> Markup:
        if same and self.has_one_side:
            cells = [self._cell(row, "new") for row in run]
        elif same:
            cells = [self._cell(row, side) for row in run for side in ("base", "new")]
        else:
            sides = [side for side in ("base", "new") if any(_of(row, side) for row in run)]
            cells = [self._cell(row, side, gap=len(sides) > 1) for side in sides for row in run]
        return Markup('<div class="{}"{}>{}{}</div>').format(
            "same" if same else "run",
            Markup(' data-edits="{}"').format(" ".join(run[0].edits)) if run[0].edits else "",
            Markup("<small>edit {}</small>").format(", ".join(label)) if label else "",
            Markup("").join(cells),
        )

    @cached_property
    def _colours(self) -> dict[str, Sequence[Sequence[Run]]]:
        return dict(zip(("base", "new"), sides(self.change), strict=True))

    def _cell(self, row: Row, side: str, *, gap: bool = False) -> Markup:
        cell = _of(row, side)
        if cell is None:
            return Markup('<i class="{}"></i>').format(side) if gap else Markup()
        coloured = self._colours[side]
        colour = coloured[cell.line - 1] if cell.line <= len(coloured) else ()
        text, rest = cell.text, Markup()
        if more := text[_LONGEST:]:
            folded = " <details><summary>and {} more characters</summary>{}</details>"
            rest += Markup(folded).format(len(more), more)
            text = text[:_LONGEST]
        if not cell.ended:
            rest += Markup(" <small>no line end</small>")
        shown = _marked(text, colour, cell.marks)
        changed = "" if row.kind == "same" else " data-changed"
        return Markup(f"<code data-side={side} data-line={cell.line}{changed}>{shown}{rest}</code>")

    def _fold(self, hidden: Sequence[Row]) -> Markup:
        first, last = (row.new.line if row.new else 0 for row in (hidden[0], hidden[-1]))
        spans = [(f"{len(hidden)} lines", first, last)]
        if len(hidden) > 2 * _STEP:
            spans.insert(0, (f"↓ {_STEP}", first, first + _STEP - 1))
            spans.append((f"↑ {_STEP}", last - _STEP + 1, last))
        fields = self._fields | {"from": str(first), "to": str(last)}
        return part("fold", f"{self._shown.url}/file", fields, spans)


def _of(row: Row, side: str) -> Cell | None:
    return row.old if side == "base" else row.new


def _is_on(comment: CommentEntry, row: Row) -> bool:
    cell = _of(row, comment.side or "")
    return cell is not None and cell.line == comment.line


def _is_in(row: Row, span: Span) -> bool:
    return row.new is not None and span[0] <= row.new.line <= span[1]


# ---------------------------------------------------------------- pictures


PICTURE_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "avif": "image/avif", "svg": "image/svg+xml",
}  # fmt: skip
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_MOST_PICTURE_BYTES = 8 << 20


def pictures_of(change: FileChange) -> list[tuple[str, str, str]]:
    """Return the picturable sides of a file, with address and size."""
    kind = splitext(change.path)[1][1:].lower()
    if kind not in PICTURE_TYPES or change.link:
        return []
    sides = {"before": change.before, "after": change.after}
    return [
        (side, f"/blob/{blob_id(data)}?as={kind}", f"{len(data):,} bytes")
        for side, data in sides.items()
        if data is not None and len(data) <= _MOST_PICTURE_BYTES
    ]


def picture(gate: Gate, oid: str, kind: str) -> tuple[bytes, str]:
    """Return a blob and its media type; raises `UsageError` if it cannot be shown."""
    data = gate.blob(oid) if kind in PICTURE_TYPES else None
    if data is None or len(data) > _MOST_PICTURE_BYTES:
        raise UsageError("there is no such picture", "go back to the change")
    return data, PICTURE_TYPES[kind]


# ---------------------------------------------------------------- colours


_MOST_COLOURED_BYTES = 300_000  # of a file; a longer one is shown without colours
# A kind (Pygments' short name of a token, like `k` or `s2`), or nothing, and the text.
Run = tuple[str, str]


@lru_cache(maxsize=128)
def coloured(path: str, text: str) -> Sequence[Sequence[Run]]:
    """Return the runs of each line; nothing for a long file, or one in no known language."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.token import STANDARD_TYPES
    from pygments.util import ClassNotFound

    if len(text) > _MOST_COLOURED_BYTES:
        return ()
    try:
        lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ()
    lines: list[list[Run]] = [[]]
    for token, value in lexer.get_tokens(text):
        name = next(filter(None, (STANDARD_TYPES.get(one) for one in reversed(token.split()))), "")
        first, *others = value.split("\n")
        lines[-1].append((name, first))
        lines += [[(name, code)] for code in others]
    return lines


def sides(change: FileChange) -> tuple[Sequence[Sequence[Run]], Sequence[Sequence[Run]]]:
    """Return the runs of each line before a change, and after it."""
    old = coloured(change.renamed_from or change.path, decode(change.before or b""))
    return old, coloured(change.path, decode(change.after or b""))


def _marked(text: str, runs: Sequence[Run], marks: Sequence[tuple[int, int]]) -> Markup:
    """Return the text as HTML, with its marks and syntax colours.

    Colours of another text are left out.
    """
    if "".join([piece for _, piece in runs]) != text:
        runs = (("", text),)
    starts = [0, *accumulate(len(piece) for _, piece in runs)]
    pieces = list[str]()
    edges = (min(edge, len(text)) for mark in marks for edge in mark)
    for first, end in pairwise(sorted({*starts, *edges})):
        piece = _piece(text[first:end], runs[bisect(starts, first) - 1][0])
        is_marked = any(a <= first and end <= b for a, b in marks)
        pieces.append(f"<mark>{piece}</mark>" if is_marked else piece)
    return Markup("".join(pieces))


def _piece(text: str, kind: str) -> str:
    # Formatting each piece as Markup takes five times as long.
    return f'<span class="syntax-{kind}">{escape(text)}</span>' if kind else str(escape(text))
