"""A file's change as HTML: one markup, which the style sheet lays out in one column or in two.

Each line is one element with its side and number; the deleted lines of a run come before the added
ones.  Empty elements keep lines beside each other that belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from urllib.parse import urlencode

from markupsafe import Markup

from patchq.core.model.values import FileChange, LineHunk
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import decode
from patchq.gate.report.schema import CommentEntry, Report
from patchq.gate.review import rows
from patchq.gate.review.rows import Cell, Row
from patchq.page import colours, pictures
from patchq.page.pictures import Picture
from patchq.page.shown import part

_AROUND = 3  # lines that are shown before and behind a change
_STEP = 20  # lines that one press of a fold's button shows
_LEAST_FOLD = 4
_LONGEST = 2000  # characters of a line that are shown unasked
_WHOLE = 1 << 30

Span = tuple[int, int]  # first and last line of the new side, counted from 1
Highlights = tuple[tuple[colours.Run, ...], ...]


class FileDiff:
    """The change of one file, written as HTML when asked; `url` is the address of the whole.

    `round` is the number of the round that it is compared with, 0 for its target.
    """

    def __init__(
        self,
        report: Report,
        since: Mapping[str, Sequence[LineHunk]],
        change: FileChange,
        url: str,
        round: int,
    ) -> None:
        (self.file,) = rows.side_by_side(report, [change], since, most=0)
        self.url, self.change, self._round = url, change, round
        self._report, self._since = report, since
        self._comments: dict[tuple[str | None, int], list[CommentEntry]] = {}
        for one in report.review.comments if report.review else ():
            if one.path == change.path and one.line is not None:
                self._comments.setdefault((one.side, one.line), []).append(one)

    @cached_property
    def _rows(self) -> Sequence[Row]:
        (whole,) = rows.side_by_side(
            self._report, [self.change], self._since, context=_WHOLE, most=_WHOLE, run=_WHOLE
        )
        return whole.rows

    @property
    def what(self) -> str:
        """Its kind of change: of a renamed file how much stays, and a change of its mode."""
        file, change, bits = self.file, self.change, {True: "755", False: "644"}
        whole = sum(len(split_lines(one or b"")) for one in (change.before, change.after))
        alike = 100 * (whole - file.added - file.deleted) // max(1, whole)
        what = f"{alike} % alike" if file.renamed_from else file.what
        if change.was_executable is None:
            return what
        return f"{what}, mode {bits[change.was_executable]} → {bits[change.executable]}"

    @property
    def sizes(self) -> str:
        """The bytes before and after."""
        return f"{len(self.change.before or b''):,} → {len(self.change.after or b''):,} bytes"

    @property
    def pictures(self) -> list[Picture]:
        """Both sides of a picture; nothing of other files."""
        return pictures.of(self.change)

    @property
    def is_discussed(self) -> bool:
        """True if a comment on its lines is not resolved."""
        return any(one.state != "resolved" for some in self._comments.values() for one in some)

    def address(self) -> str:
        """Return the address of the file alone."""
        return f"{self.url}/file?{urlencode(self._fields())}"

    def _fields(self) -> dict[str, str]:
        since = {"since": str(self._round)} if self._round else {}
        return {"path": self.file.path, **since}

    @property
    def one_sided(self) -> bool:
        """True of a file that is new or gone: it has one column."""
        return self.file.what in ("created", "deleted")

    def html(self, opened: Span | None = None) -> Markup:
        """Return all lines, with folds where nothing changes, but for the lines of `opened`."""
        kept = [row.kind != "same" or bool(self._comments_on(row)) for row in self._rows]
        return self._folded(self._rows, _near(kept), opened)

    def unfolded(self, fold: Span, opened: Span) -> Markup:
        """Return the opened lines of one fold, with folds for what is left of it."""
        lines = [row for row in self._rows if row.kind == "same" and _within(row, fold)]
        return self._folded(lines, [False] * len(lines), opened)

    @cached_property
    def _old(self) -> Highlights:
        path = self.file.renamed_from or self.file.path
        return colours.lines(path, decode(self.change.before or b""))

    @cached_property
    def _new(self) -> Highlights:
        return colours.lines(self.file.path, decode(self.change.after or b""))

    def _folded(self, lines: Sequence[Row], near: Sequence[bool], opened: Span | None) -> Markup:
        shown = [
            here or (opened is not None and _within(row, opened))
            for row, here in zip(lines, near, strict=True)
        ]
        parts: list[Markup] = []
        for is_shown, group in groupby(zip(shown, lines, strict=True), lambda pair: pair[0]):
            part = [row for _, row in group]
            if is_shown or len(part) < _LEAST_FOLD:
                parts += self._blocks(part)
            else:
                parts.append(self._fold(part))
        return Markup("").join(parts)

    def _blocks(self, lines: Iterable[Row]) -> Iterator[Markup]:
        """Yield runs of lines, and behind each line its comments."""
        before: tuple[str, ...] = ()
        for (same, edits), group in groupby(lines, lambda row: (row.kind == "same", row.edits)):
            run: list[Row] = []
            label = edits if edits != before else ()
            before = edits
            for row in group:
                run.append(row)
                if comments := self._comments_on(row):
                    yield self._block(run, label, same=same)
                    waits = self._report.state == "proposed"
                    yield from (part("thread", one, self.url, waits) for one in comments)
                    run, label = [], ()
            if run:
                yield self._block(run, label, same=same)

    def _comments_on(self, row: Row) -> list[CommentEntry]:
        places = [("base", row.old), ("new", row.new)]
        return [
            one
            for side, cell in places
            if cell
            for one in self._comments.get((side, cell.line), ())
        ]

    def _block(self, run: Sequence[Row], label: Sequence[str], *, same: bool) -> Markup:
        if same and self.one_sided:
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

    def _cell(self, row: Row, side: str, *, gap: bool = False) -> Markup:
        """Return the line of one side; where it has none, a gap beside the other's."""
        cell = _of(row, side)
        if cell is None:
            return Markup('<i class="{}"></i>').format(side) if gap else Markup()
        highlights = self._old if side == "base" else self._new
        colour = highlights[cell.line - 1] if cell.line <= len(highlights) else ()
        text, rest = cell.text, Markup()
        if len(text) > _LONGEST:
            rest += Markup(" <small>… and {} more characters</small>").format(len(text) - _LONGEST)
            text = text[:_LONGEST]
        if not cell.ended:
            rest += Markup(" <small>no line end</small>")
        shown = colours.marked(text, colour, cell.marks)
        changed = "" if row.kind == "same" else " data-changed"
        return Markup(f"<code data-side={side} data-line={cell.line}{changed}>{shown}{rest}</code>")

    def _fold(self, part: Sequence[Row]) -> Markup:
        first, last = (row.new.line if row.new else 0 for row in (part[0], part[-1]))
        spans = [(f"{len(part)} lines", first, last)]
        if len(part) > 2 * _STEP:
            spans.insert(0, (f"↓ {_STEP}", first, first + _STEP - 1))
            spans.append((f"↑ {_STEP}", last - _STEP + 1, last))
        forms = [self._button((first, last), words, (a, b)) for words, a, b in spans]
        return Markup('<div class="fold">{}</div>').format(Markup("").join(forms))

    def _button(self, fold: Span, words: str, opened: Span) -> Markup:
        fields = self._fields() | {"fold": "{}-{}".format(*fold)}
        fields |= {"from": str(opened[0]), "to": str(opened[1])}
        hidden = (
            Markup('<input type="hidden" name="{}" value="{}">').format(*one)
            for one in fields.items()
        )
        label = "Show lines {} to {} of {}".format(*opened, self.file.path)
        return Markup(
            '<form action="{}/file">{}<button data-unfold{} title="{}">{}</button></form>'
        ).format(
            self.url,
            Markup("").join(hidden),
            Markup(" data-all") if opened == fold else "",
            label,
            words,
        )


def _of(row: Row, side: str) -> Cell | None:
    return row.old if side == "base" else row.new


def _within(row: Row, span: Span) -> bool:
    return row.new is not None and span[0] <= row.new.line <= span[1]


def _near(kept: Sequence[bool]) -> list[bool]:
    """Return for each row if one that is kept is on it or near it."""
    near = [False] * len(kept)
    for at, is_kept in enumerate(kept):
        if is_kept:
            first, end = max(0, at - _AROUND), min(len(kept), at + _AROUND + 1)
            near[first:end] = [True] * (end - first)
    return near
