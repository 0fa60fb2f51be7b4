"""A batch side by side: the old lines and the new ones in rows, each row with its edits.

Pure: a report's edits and the files' bytes in, rows out, for the terminal, the page and programs
alike.  What is far from every change is folded, and so is the middle of a long run, so that a large
difference costs no more to show than a small one; a fold says how many rows it hides.  The
text of a cell is safe to print: what a reader would not see is written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, zip_longest
from typing import Literal

from msgspec import Struct

from patchq.core.model.values import EditOutcome, FileChange, LineHunk
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import clip, decode, visible
from patchq.gate.pipeline.lines import Lines, image
from patchq.gate.report.schema import IDLE, Report

CONTEXT = 3
MOST_ROWS = 1000  # about so many of one file; the rest is one fold
_RUN, _RUN_HEAD, _RUN_TAIL = 240, 160, 20
# Old times new lines of a run up to which it is looked for which of them belong together.
_MOST_PAIRS = 2500
_LONGEST = 10_000
_MARKED = 2000  # characters of a line up to which its words are compared
_ALIKE = 0.4  # the share of words in common from which two lines count as one line, changed
_BINARY_PROBE = 8000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Place = tuple[int | None, int | None]  # an old and a new line, 0-based; one of them may be none


class Cell(Struct, frozen=True):
    """One line of one side, counted from 1, without its end.

    `marks` are the characters (first and end) that the other side does not have.
    """

    line: int
    text: str
    marks: tuple[Lines, ...] = ()
    ended: bool = True
    """True if it has a line end; only a file's last line may have none."""


class Row(Struct, frozen=True):
    """A line of both sides, or of one of them.

    A `fold` hides `hidden` rows; its cells, without text, have the first of their lines.
    """

    kind: Literal["same", "changed", "removed", "added", "fold"]
    old: Cell | None
    new: Cell | None
    edits: tuple[str, ...] = ()
    """The ids of the edits that the change comes from; none of a row that is the same."""
    hidden: int = 0


class FileRows(Struct, frozen=True):
    """One file's change; `added` and `deleted` count lines, folded ones as well.  Of a binary file
    there are no rows."""

    path: str
    what: Literal["changed", "created", "deleted", "renamed"]
    edits: tuple[str, ...]
    rows: tuple[Row, ...]
    added: int = 0
    deleted: int = 0
    renamed_from: str | None = None
    binary: bool = False
    link: str = ""
    """A note on a symbolic link, where there is or was one."""


def side_by_side(
    report: Report,
    changes: Sequence[FileChange],
    since: Mapping[str, Sequence[LineHunk]] | None = None,
    *,
    context: int = CONTEXT,
    most: int = MOST_ROWS,
    run: int = _RUN,
) -> tuple[FileRows, ...]:
    """Return the changes of a batch, in the order of their paths.

    A report counts its edits' lines on its base; where the changes begin at another commit, `since`
    has what changed between the two, by the path of today.  A run of more than `run` changed lines
    is folded in its middle.
    """
    found = []
    for change in sorted(changes, key=lambda change: change.path):
        edits = [e for e in report.edits if e.path in change.paths and e.state not in IDLE]
        moved = (since or {}).get(change.renamed_from or change.path, ())
        found.append(_file(change, edits, moved, context, most, run))
    return tuple(found)


def _file(
    change: FileChange,
    edits: Sequence[EditOutcome],
    since: Sequence[LineHunk],
    context: int,
    most: int,
    run: int,
) -> FileRows:
    before, after = change.before or b"", change.after or b""
    ids, binary = (
        tuple(edit.id for edit in edits),
        b"\0" in (before[:_BINARY_PROBE] + after[:_BINARY_PROBE]),
    )
    old, new = split_lines(before), split_lines(after)
    hunks: Sequence[LineHunk] = ()
    if not binary:
        hunks = line_diff(old, new) if change.hunks is None else change.hunks
    what: Literal["changed", "created", "deleted", "renamed"] = "changed"
    if change.before is None:
        what = "created"
    elif change.after is None:
        what = "deleted"
    elif change.renamed_from is not None:
        what = "renamed"
    return FileRows(
        change.path,
        what,
        ids,
        tuple(_Sides(old, new, _Owners(edits, since), context, run).rows(hunks, most)),
        added=sum(b1 - b0 for _, _, b0, b1 in hunks),
        deleted=sum(a1 - a0 for a0, a1, _, _ in hunks),
        renamed_from=change.renamed_from,
        binary=binary,
        link=_link(change),
    )


def _link(change: FileChange) -> str:
    if change.was_link is None:
        return "a symbolic link" if change.link else ""
    one, other = ("a file", "a symbolic link")[:: 1 if change.link else -1]
    return f"{one} that becomes {other}"


# ---------------------------------------------------------------- rows


class _Sides(Struct, frozen=True):
    """The lines of both sides of one file."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    owners: _Owners
    context: int
    run: int

    def rows(self, hunks: Sequence[LineHunk], most: int) -> Iterator[Row]:
        at, shift, before, count = 0, 0, 0, 0
        for number, hunk in enumerate(hunks):
            if count >= most:
                yield self._rest(hunks[number:], at, shift)
                return
            for row in self._between(at, hunk[0], shift, before, self.context):
                yield row
                count += 1
            for row in self._run(hunk):
                yield row
                count += 1
            at, shift, before = hunk[1], hunk[3] - hunk[1], self.context
        if hunks:
            yield from self._between(at, len(self.old), shift, before, 0)

    def _between(self, at: int, end: int, shift: int, before: int, behind: int) -> Iterator[Row]:
        """The lines from `at` to `end`, which both sides have: the first `before` of them, and the
        last `behind`; a fold is never of one line."""
        first, last = min(at + before, end), max(at, end - behind)
        if last - first < 2:
            first = last = end
        for line in range(at, first):
            yield self._same(line, shift)
        if first < last:
            yield Row("fold", _blank(first), _blank(first + shift), hidden=last - first)
        for line in range(last, end):
            yield self._same(line, shift)

    def _same(self, line: int, shift: int) -> Row:
        text, ended = _text(self.old[line]), self.old[line].endswith(b"\n")
        new = Cell(line + shift + 1, text, (), ended)
        return Row("same", Cell(line + 1, text, (), ended), new)

    def _rest(self, hunks: Sequence[LineHunk], at: int, shift: int) -> Row:
        changed = sum(max(a1 - a0, b1 - b0) - (a1 - a0) for a0, a1, b0, b1 in hunks)
        ids = (id for a0, a1, _, _ in hunks for id in self.owners.of(a0, a1))
        hidden = len(self.old) - at + changed
        return Row("fold", _blank(at), _blank(at + shift), tuple(dict.fromkeys(ids)), hidden)

    def _run(self, hunk: LineHunk) -> Iterator[Row]:
        """The rows of changed lines that stand together; the middle of a long run is folded."""
        a0, a1, b0, b1 = hunk
        places = list(_places(self.old[a0:a1], self.new[b0:b1], a0, b0))
        ids = list(self.owners.each(places, a0, a1))
        first, last = len(places), len(places)
        if len(places) > self.run:
            first, last = _RUN_HEAD, len(places) - _RUN_TAIL
        for place, edits in zip(places[:first], ids[:first], strict=True):
            yield self._changed(place, edits)
        if first < last:
            named = tuple(dict.fromkeys(id for some in ids[first:last] for id in some))
            a, b = (None if line is None else _blank(line) for line in places[first])
            yield Row("fold", a, b, named, last - first)
        for place, edits in zip(places[last:], ids[last:], strict=True):
            yield self._changed(place, edits)

    def _changed(self, place: Place, edits: tuple[str, ...]) -> Row:
        a, b = place
        if a is None or b is None:
            old = None if a is None else _cell(self.old, a)
            new = None if b is None else _cell(self.new, b)
            return Row("added" if old is None else "removed", old, new, edits)
        ends = self.old[a].endswith(b"\r\n") == self.new[b].endswith(b"\r\n")
        one, other = (_text(line, carriage=not ends) for line in (self.old[a], self.new[b]))
        ours, theirs = word_marks(one, other)
        cells = _cell(self.old, a, one, ours), _cell(self.new, b, other, theirs)
        return Row("changed", *cells, edits)


def _blank(line: int) -> Cell:
    return Cell(line + 1, "")


def _cell(
    lines: Sequence[bytes], line: int, text: str | None = None, marks: tuple[Lines, ...] = ()
) -> Cell:
    shown = _text(lines[line]) if text is None else text
    return Cell(line + 1, shown, marks, lines[line].endswith(b"\n"))


def _text(line: bytes, carriage: bool = False) -> str:
    """A line as it is shown; its carriage return only where the other side has none."""
    line = line.removesuffix(b"\n")
    return clip(visible(decode(line if carriage else line.removesuffix(b"\r")), "\t"), _LONGEST)


# ---------------------------------------------------------------- whose a line is


class _Owners:
    """Which edits of one file a change comes from."""

    def __init__(self, edits: Sequence[EditOutcome], since: Sequence[LineHunk]) -> None:
        self._placed: list[tuple[Lines, str]] = []
        self._others: list[str] = []
        for edit in edits:
            if edit.lines:
                first, last = edit.lines
                self._placed.append((image((first - 1, last), since), edit.id))
            else:
                self._others.append(edit.id)

    def of(self, first: int, end: int) -> tuple[str, ...]:
        """The edits whose quote has lines of the run, else those whose quote borders on it, else
        those that have no place on the base."""
        near = [(a, id) for a, id in self._placed if a[0] <= end and first <= a[1]]
        over = [id for (start, stop), id in near if start < end and first < stop]
        return tuple(over or [id for _, id in near] or self._others)

    def each(self, places: Sequence[Place], first: int, end: int) -> Iterator[tuple[str, ...]]:
        """The edits of each row of a run; a new line goes with the old one before it."""
        ids = self.of(first, end)
        if len(ids) < 2:
            yield from (ids for _ in places)
            return
        owned = [self._line(old, ids) if old is not None else None for old, _ in places]
        known = next((some for some in owned if some), ids)
        for some in owned:
            known = some or known
            yield known

    def _line(self, line: int, ids: tuple[str, ...]) -> tuple[str, ...]:
        """The edits whose quote has the line; of several the narrowest ones."""
        over = [(a[1] - a[0], id) for a, id in self._placed if a[0] <= line < a[1] and id in ids]
        least = min((size for size, _ in over), default=0)
        return tuple(id for size, id in over if size == least) or ids


# ---------------------------------------------------------------- which line became which


def _places(old: Sequence[bytes], new: Sequence[bytes], a0: int, b0: int) -> Iterator[Place]:
    """The old and new lines of a run, side by side: those that are alike, in their order, and
    between them one beside the other as they come."""
    pairs = _alike(old, new) if 1 < len(old) * len(new) <= _MOST_PAIRS else []
    at, there = 0, 0
    for i, j in [*pairs, (len(old), len(new))]:
        yield from zip_longest(range(a0 + at, a0 + i), range(b0 + there, b0 + j))
        if i < len(old):
            yield a0 + i, b0 + j
        at, there = i + 1, j + 1


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> list[Lines]:
    """The pairs of lines that share most words, taken in their order on both sides."""
    ours, theirs = ([frozenset(_WORDS.findall(decode(line))) for line in s] for s in (old, new))
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    share = [[_shared(one, other) for other in theirs] for one in ours]
    for i in range(len(old) - 1, -1, -1):
        row, below, shares = best[i], best[i + 1], share[i]
        for j in range(len(new) - 1, -1, -1):
            row[j] = max(below[j], row[j + 1], below[j + 1] + shares[j])
    pairs, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if share[i][j] and best[i][j] == best[i + 1][j + 1] + share[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two lines have in common; 0 if it is too small."""
    most = max(len(one), len(other))
    share = len(one & other) / most if most else 0.0
    return share if share >= _ALIKE else 0.0


def word_marks(old: str, new: str) -> tuple[tuple[Lines, ...], tuple[Lines, ...]]:
    """The words (first character and end) that only one of two lines has; none where they have too
    little in common, and differ as a whole."""
    if old == new or max(len(old), len(new)) > _MARKED:
        return (), ()
    ours, theirs = _WORDS.findall(old), _WORDS.findall(new)
    hunks = line_diff(ours, theirs)
    lost = sum(len(word) for a0, a1, _, _ in hunks for word in ours[a0:a1] if not word.isspace())
    all = sum(len(word) for word in ours if not word.isspace())
    if all and lost > all * (1 - _ALIKE / 2):
        return (), ()
    return _at(ours, [h[:2] for h in hunks]), _at(theirs, [h[2:] for h in hunks])


def _at(words: Sequence[str], runs: Sequence[Lines]) -> tuple[Lines, ...]:
    """Runs of words as characters."""
    ends = [0, *accumulate(map(len, words))]
    return tuple((ends[first], ends[end]) for first, end in runs if first < end)
