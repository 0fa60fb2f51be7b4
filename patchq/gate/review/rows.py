"""A change side by side: the old lines and the new ones in rows, each row with its edits.

`compare` and `since` read the files from the repository.  The text of a cell is safe to show: what
a reader would not see is written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, zip_longest
from typing import Literal

from msgspec import Struct

from patchq.core.model.values import EditOutcome, FileChange, LineHunk
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import clip, decode, visible
from patchq.gate.git import records
from patchq.gate.git.merges import changes_with_renames, line_hunks, merged_files
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.lines import Lines, image
from patchq.gate.report.schema import IDLE, CommittedReport, Report, has_commit

_MOST_ROUNDS = 50
_CONTEXT = 3
# Old times new lines of a run up to which it is looked for which of them belong together.
_MOST_PAIRS = 2500
_LONGEST = 10_000
_MARKED = 2000  # characters of a line up to which its words are compared
_ALIKE = 0.4  # the share of words in common from which two lines count as one line, changed
_BINARY_PROBE = 8000
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Place = tuple[int | None, int | None]  # an old and a new line, 0-based; one of them may be none


# ---------------------------------------------------------------- files


class Comparison(Struct, frozen=True):
    """The changes of a batch's commit, and of its files before that.

    The latter since the base on which the report counts its edits' lines.
    """

    commit: str
    changes: tuple[FileChange, ...]
    since: Mapping[str, Sequence[LineHunk]]
    conflicts: frozenset[str] = frozenset()
    """Of a comparison with an earlier round: the files that are shown against its result, as what
    the target changed meanwhile cannot be taken out."""


def rounds(context: RepoContext, report: Report) -> list[CommittedReport]:
    """Return the earlier proposals that a change answers, oldest first."""
    found: list[CommittedReport] = []
    at: Report | None = report
    while at and at.retry.of and len(found) < _MOST_ROUNDS:
        at = context.queue.load(at.retry.of)
        if at and has_commit(at) and context.repo.exists(at.commit) and at.id != report.id:
            found.append(at)
    return found[::-1]


def since(context: RepoContext, report: Report, earlier: CommittedReport) -> Comparison | None:
    """Return a change's difference from an earlier round, without its target's changes.

    The earlier result is merged onto the parent of the later one, and compared with that.
    """
    repo, now, before = context.repo, compare(context, report), compare(context, earlier)
    if now is None or before is None:
        return None
    parents = (next(iter(repo.parents(commit))) for commit in (before.commit, now.commit))
    base, ours = (repo.tree(parent).root for parent in parents)
    touched = {path for one in (*before.changes, *now.changes) for path in one.paths}
    changes, conflicts = merged_files(
        repo, (base, ours, repo.tree(before.commit).root), now.commit, touched
    )
    return Comparison(now.commit, changes, {}, conflicts)


def compare(context: RepoContext, report: Report) -> Comparison | None:
    """Return a batch's changes, with commits that a person added to its branch.

    None where its commit is not there any more.
    """
    repo, commit = context.repo, report.commit
    if commit is None or not repo.exists(commit):
        return None
    parent = next(iter(repo.parents(commit)), None)
    if parent is None:
        return None
    if report.state == "proposed":
        commit = context.branches.tip(records.branch(report.id)) or commit
    changes = changes_with_renames(repo, parent, commit)
    base = report.base.commit if report.base else parent
    since = {}
    if base != parent and repo.exists(base):
        before, now = repo.tree(base), repo.tree(parent)
        for change in changes:
            path = change.renamed_from or change.path
            if change.before is not None and before.entry(path) and now.entry(path):
                since[path] = line_hunks(before.read(path), change.before)
    return Comparison(commit, changes, since)


# ---------------------------------------------------------------- lines


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
    """A line of both sides, or of one of them."""

    kind: Literal["same", "changed", "removed", "added"]
    old: Cell | None
    new: Cell | None
    edits: tuple[str, ...] = ()
    """The ids of the edits that the change comes from; none of a row that is the same."""


class FileRows(Struct, frozen=True, dict=True):
    """One file's change and its edits, without rows for a binary file."""

    change: FileChange
    hunks: Sequence[LineHunk]
    binary: bool
    owners: _Owners

    @property
    def path(self) -> str:
        return self.change.path

    @property
    def renamed_from(self) -> str | None:
        return self.change.renamed_from

    @property
    def what(self) -> Literal["changed", "created", "deleted", "renamed"]:
        if self.change.before is None:
            return "created"
        if self.change.after is None:
            return "deleted"
        return "renamed" if self.renamed_from else "changed"

    @property
    def added(self) -> int:
        return sum(b1 - b0 for _, _, b0, b1 in self.hunks)

    @property
    def deleted(self) -> int:
        return sum(a1 - a0 for a0, a1, _, _ in self.hunks)

    @cached_property
    def rows(self) -> Sequence[Row]:
        old, new = (split_lines(side or b"") for side in (self.change.before, self.change.after))
        found, at = list[Row](), 0
        for a0, a1, b0, b1 in (*self.hunks, (len(old), len(old), len(new), len(new))):
            found += (_row(old, new, (line, line + b0 - a0)) for line in range(at, a0))
            places = list(_places(old[a0:a1], new[b0:b1], a0, b0))
            owners = self.owners.each(places, a0, a1)
            found += (_row(old, new, *one) for one in zip(places, owners, strict=True))
            at = a1
        return found if self.hunks else ()


def side_by_side(
    report: Report,
    changes: Sequence[FileChange],
    since: Mapping[str, Sequence[LineHunk]] | None = None,
) -> tuple[FileRows, ...]:
    """Return the changes of a batch, in the order of their paths.

    A report counts its edits' lines on its base; where the changes begin at another commit, `since`
    has what changed between the two, by the path of today.
    """
    found = []
    for change in sorted(changes, key=lambda change: change.path):
        edits = [e for e in report.edits if e.path in change.paths and e.state not in IDLE]
        moved = (since or {}).get(change.renamed_from or change.path, ())
        before, after = change.before or b"", change.after or b""
        binary = b"\0" in before[:_BINARY_PROBE] + after[:_BINARY_PROBE]
        hunks = [] if binary else line_diff(split_lines(before), split_lines(after))
        found.append(FileRows(change, hunks, binary, _Owners(edits, moved)))
    return tuple(found)


# ---------------------------------------------------------------- rows


def _row(
    old: Sequence[bytes], new: Sequence[bytes], place: Place, edits: tuple[str, ...] = ()
) -> Row:
    a, b = place
    if a is None or b is None:
        one = None if a is None else _cell(old, a)
        other = None if b is None else _cell(new, b)
        return Row("added" if one is None else "removed", one, other, edits)
    if old[a] == new[b]:
        return Row("same", _cell(old, a), _cell(new, b))
    ends = old[a].endswith(b"\r\n") == new[b].endswith(b"\r\n")
    texts = [_text(line, carriage=not ends) for line in (old[a], new[b])]
    ours, theirs = word_marks(*texts)
    return Row("changed", _cell(old, a, texts[0], ours), _cell(new, b, texts[1], theirs), edits)


def _cell(
    lines: Sequence[bytes], line: int, text: str | None = None, marks: tuple[Lines, ...] = ()
) -> Cell:
    shown = _text(lines[line]) if text is None else text
    return Cell(line + 1, shown, marks, lines[line].endswith(b"\n"))


def _text(line: bytes, carriage: bool = False) -> str:
    line = line.removesuffix(b"\n")
    return clip(visible(decode(line if carriage else line.removesuffix(b"\r")), "\t"), _LONGEST)


def near(kept: Sequence[bool]) -> list[bool]:
    """Return, for each row, True if it is kept or near a kept one."""
    return [any(kept[max(0, at - _CONTEXT) : at + _CONTEXT + 1]) for at in range(len(kept))]


# ---------------------------------------------------------------- whose a line is


class _Owners:
    """The edits of one file, and the places of their quotes before the change."""

    def __init__(self, edits: Sequence[EditOutcome], since: Sequence[LineHunk]) -> None:
        placed = [(edit.lines, edit.id) for edit in edits if edit.lines]
        self._placed = [(image((a - 1, b), since), id) for (a, b), id in placed]
        self._others = [edit.id for edit in edits if not edit.lines]

    def _of(self, first: int, end: int) -> tuple[str, ...]:
        """Return the ids of the edits that own a run of lines.

        They are those whose quote has lines of the run, else those whose quote borders on it, else
        those that have no place on the base.
        """
        near = [(a, id) for a, id in self._placed if a[0] <= end and first <= a[1]]
        over = [id for (start, stop), id in near if start < end and first < stop]
        return tuple(over or [id for _, id in near] or self._others)

    def each(self, places: Sequence[Place], first: int, end: int) -> Iterator[tuple[str, ...]]:
        """Yield the edits of each row of a run.

        A new line goes with the old one before it.
        """
        ids = self._of(first, end)
        if len(ids) < 2:
            yield from (ids for _ in places)
            return
        owned = [self._line(old, ids) if old is not None else None for old, _ in places]
        known = next((some for some in owned if some), ids)
        for some in owned:
            known = some or known
            yield known

    def _line(self, line: int, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Return the edits whose quote has the line; of several the narrowest ones."""
        over = [(a[1] - a[0], id) for a, id in self._placed if a[0] <= line < a[1] and id in ids]
        least = min((size for size, _ in over), default=0)
        return tuple(id for size, id in over if size == least) or ids


# ---------------------------------------------------------------- which line became which


def _places(old: Sequence[bytes], new: Sequence[bytes], a0: int, b0: int) -> Iterator[Place]:
    """Yield the old and new lines of a run, side by side.

    Lines that are alike are pairs, in their order; between them come the others one beside the
    other.
    """
    pairs = [*_alike(old, new)] if 1 < len(old) * len(new) <= _MOST_PAIRS else []
    at, there = 0, 0
    for i, j in [*pairs, (len(old), len(new))]:
        yield from zip_longest(range(a0 + at, a0 + i), range(b0 + there, b0 + j))
        if i < len(old):
            yield a0 + i, b0 + j
        at, there = i + 1, j + 1


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Lines]:
    ours, theirs = ([frozenset(_WORDS.findall(decode(line))) for line in s] for s in (old, new))
    first = 0
    for i, words in enumerate(ours):
        shares = [_shared(words, other) for other in theirs[first:]]
        if any(shares):
            first += shares.index(max(shares))
            yield i, first
            first += 1


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    most = max(len(one), len(other))
    share = len(one & other) / most if most else 0.0
    return share if share >= _ALIKE else 0.0


def word_marks(old: str, new: str) -> tuple[tuple[Lines, ...], tuple[Lines, ...]]:
    """Return the words that only one of two lines has.

    Each is (first character, end).  There are none where the lines have too little in common, and
    differ as a whole.
    """
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
    ends = [0, *accumulate(map(len, words))]
    return tuple((ends[first], ends[end]) for first, end in runs if first < end)
