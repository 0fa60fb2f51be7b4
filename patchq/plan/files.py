"""The files of a batch: which one an edit names, and what becomes of it, as a whole and in part.

An edit may name a file by the path that it has or by the one that a rename of the batch gives it.
What creates, deletes or renames a file is checked against the tree and against the batch itself.

Edits of one file are kept apart: they are disjoint replacements of its base, whoever made them.
Spans are bytes of the base, so that edits which do not touch each other give the same text in any
order.  An edit that only fits on what earlier edits wrote is folded into their replacements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal, get_args

from patchq.model.ops import Anchored, Create, DeleteFile, InsertAt, Rename, Replace, Write, halves
from patchq.model.values import (
    Collision,
    Edit,
    EditOutcome,
    EditState,
    FileChange,
    Hunk,
    Problem,
    Tree,
)
from patchq.plan import guards, targets
from patchq.plan.targets import Refused, Rules
from patchq.resolve.ladder import Found, Rewrite, replaced, resolve
from patchq.resolve.readings import quoted_lines
from patchq.text.line_diff import whole_lines
from patchq.text.lines import Text, content
from patchq.text.quote import decode

_MOST_SHOWN = 60
_NAMES: dict[type, str] = {
    Create: "create",
    DeleteFile: "delete_file",
    Rename: "rename",
    Write: "write",
    InsertAt: "insert",
}


Deed = Literal["deleted", "renamed", "made", "edited", "written"]
"""What can be done to a file, in the order in which a clash names who did it."""


@dataclass(slots=True)
class File:
    """One file of the batch: where it stood, where it will, and what is made of it."""

    path: str
    text: Text
    """The text on the base; of a file that the batch creates, as it is created."""
    overlay: Overlay
    before: bytes | None
    executable: bool = False
    renamed_from: str | None = None
    by: dict[Deed, str] = field(default_factory=dict)
    """The edits that did something to it."""
    final_newline: bool | None = None
    """How the text ends, where an edit says it; None: as it did."""
    folded: dict[object, EditOutcome] = field(default_factory=dict)
    """The edits that were resolved on what earlier ones wrote."""
    indexed: list[tuple[int, int, str]] = field(default_factory=list)
    """What indexed edits change of the base: the bytes from and to, and the edit."""
    _now: Text | None = None

    def has_base(self, text: Text) -> bool:
        """Whether it is the base's text."""
        return text is self.text and "made" not in self.by

    def now(self) -> Text:
        """The text as the edits so far leave it."""
        whole = self.overlay.text()
        if whole is self.text.whole:
            return self.text
        if self._now is None or self._now.data is not whole:
            self._now = Text(whole)
        return self._now

    def change(self) -> FileChange | None:
        after = None
        if "deleted" not in self.by:
            whole = self.overlay.text()
            ended = whole if self.final_newline else content(whole)
            after = self.text.restored(whole) if self.final_newline is None else ended
        if after == self.before and not self.renamed_from:
            return None
        hunks = None
        if self.before is not None and after is not None and "made" not in self.by:
            hunks = whole_lines(self.before, after, self.overlay.hunks())
        return FileChange(self.path, self.before, after, self.executable, self.renamed_from, hunks)


class Files:
    """The files that a batch speaks of, read from the tree when an edit first names them."""

    def __init__(self, edits: Sequence[Edit], tree: Tree, rules: Rules) -> None:
        self._tree = tree
        self._rules = rules
        self._aliases = {e.op.to: e.path for e in edits if isinstance(e.op, Rename)}
        self._files: dict[str, File] = {}
        self._new_paths = targets.NewPaths()

    def __iter__(self) -> Iterator[File]:
        return iter({id(file): file for file in self._files.values()}.values())

    def named(self, path: str) -> File:
        """The file that an edit names; raises `Refused`."""
        if path not in self._files and path in self._aliases and self._tree.entry(path) is None:
            path = self._aliases[path]
        if path not in self._files:
            data, entry = targets.existing(self._tree, path, self._rules)
            text = Text(data)
            self._files[path] = File(path, text, Overlay(text.whole), data, entry.executable)
        return self._files[path]

    def create(self, edit: Edit, op: Create) -> bool:
        """Make the file; False if it is there already, byte for byte.  Raises `Refused`."""
        if edit.path in self._files or edit.path in self._aliases:
            raise clash(edit, self._files.get(edit.path), "another edit of the batch")
        entry = targets.check_new(self._tree, edit.path, self._rules)
        there = None if entry is None else self._tree.read(edit.path)
        data = op.text.encode("utf-8", "surrogateescape")
        if there == data:
            return False
        if there:
            raise _exists(edit.path, f"{edit.path} exists and is not empty", there)
        if problem := guards.escaped_file(edit, op) or guards.elided(edit, self._rules, None):
            raise Refused(problem)
        self._new_paths.add(edit.path)
        text, executable = Text(data), entry is not None and entry.executable
        self._files[edit.path] = File(
            edit.path, text, Overlay(text.whole), there, executable, by={"made": edit.id}
        )
        return True

    def write(self, edit: Edit, op: Write) -> Found | None:
        """Make the file hold the text: what that changes, None if it is new; raises `Refused`."""
        if edit.path not in self._files and self._tree.entry(edit.path) is None:
            self.create(edit, Create(op.text))
            return None
        file = self.named(edit.path)
        if file.by.keys() & {"edited", "made", "deleted", "written"}:
            raise clash(edit, file, "another edit of the file that this one writes")
        file.by["written"] = edit.id
        if problem := guards.elided(edit, self._rules, file.text):
            raise Refused(problem)
        if file.text.lines:
            targets.check_text(edit.path, file.text.data, self._rules)
        if problem := guards.shrinks(edit, op, self._rules, file.text):
            raise Refused(problem)
        new = op.text.removeprefix("\ufeff" if file.text.offset else "")
        file.final_newline = not new or new.endswith("\n")
        rewrite = Rewrite(file.text.contents, quoted_lines(new))
        return Found("exact", 0, len(file.text.lines), (rewrite.at(file.text, 0),))

    def delete(self, edit: Edit, op: DeleteFile) -> None:
        """Raises `Refused`, also if the edit quotes the file and it holds something else."""
        file = self.named(edit.path)
        if op.old is not None and not self._is_whole(file, op.old):
            raise Refused(
                Problem(
                    "match.none",
                    f"edit {edit.id} deletes {edit.path} and quotes other lines than it has",
                    "read the file again; it has changed or was misremembered",
                    path=edit.path,
                )
            )
        if file.by.keys() & {"edited", "renamed", "made", "deleted"}:
            raise clash(edit, file, "an edit of the file that this one deletes")
        file.by["deleted"] = edit.id

    def _is_whole(self, file: File, quote: str) -> bool:
        if not file.text.lines or not quote:
            return not file.text.lines and not quote
        found = resolve(file.text, Replace(quote, ""), self._rules.rungs)
        return isinstance(found, Found) and (found.start, found.end) == (0, len(file.text.lines))

    def rename(self, edit: Edit, to: str) -> None:
        """Raises `Refused`."""
        file = self.named(edit.path)
        if targets.check_new(self._tree, to, self._rules) is not None:
            raise _exists(to, f"{edit.path} cannot be renamed: {to} exists")
        if file.by.keys() & {"deleted", "renamed", "made"} or to in self._files:
            raise clash(edit, file, "another edit of the batch")
        self._new_paths.add(to)
        file.renamed_from, file.path, file.by["renamed"] = file.path, to, edit.id
        self._files[to] = file


def _exists(path: str, message: str, there: bytes = b"") -> Refused:
    """`there` is what the file holds; its first lines are shown, to be quoted."""
    lines = tuple(map(decode, Text(there).contents[:_MOST_SHOWN])) if there else ()
    return Refused(
        Problem(
            "path.exists",
            message,
            "quote the lines to change in the SEARCH part, or choose another path",
            path=path,
            excerpt=(1, lines) if lines else None,
        )
    )


def clash(edit: Edit, file: File | None, what: str) -> Refused:
    """The refusal of an edit that wants something else of the file than an earlier one."""
    deeds = file.by if file else {}
    other = next((deeds[deed] for deed in get_args(Deed) if deed in deeds), None)
    return Refused(
        Problem(
            "conflict.overlap",
            f"edit {edit.id} ({op_name(edit)} {edit.path}) collides with {what}"
            + (f": edit {other}" if other else ""),
            "say once what shall become of the file",
            path=edit.path,
            conflicts_with=Collision(edit=other, path=edit.path),
        )
    )


def outcome(
    edit: Edit,
    state: EditState,
    cancelled_by: str | None = None,
    match: str | None = None,
    lines: tuple[int, int] | None = None,
) -> EditOutcome:
    """What became of an edit, at which rung and lines."""
    return EditOutcome(
        edit.id, edit.format, edit.at, edit.path, op_name(edit), state, match, lines,
        cancelled_by=cancelled_by, confidence=edit.confidence, description=edit.description,
    )  # fmt: skip


def op_name(edit: Edit) -> str:
    """The operation as reports name it."""
    if type(edit.op) in _NAMES:
        return _NAMES[type(edit.op)]
    if isinstance(edit.op, Anchored):
        return edit.op.action.partition("_")[0]
    return "replace" if halves(edit.op)[1] else "delete"


# ---------------------------------------------------------------- the edits of one file


_END = attrgetter("end")
_START = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one edit has claimed of the base: `hunks`, at least one, in a run of lines that it
    quotes, and so the hull `start:end` round them.  `meaning` is equal for edits that mean one."""

    edit: str
    format: str
    hunks: tuple[Hunk, ...]
    meaning: object = None

    @property
    def start(self) -> int:
        return self.hunks[0].start

    @property
    def end(self) -> int:
        return self.hunks[-1].end


@dataclass(frozen=True, slots=True)
class Patch:
    """One replacement of the base's bytes, and the edits that it comes from."""

    hunk: Hunk
    edits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Island:
    """A stretch of the base that is under footprints, which agree wherever they overlap."""

    start: int
    end: int
    footprints: tuple[Footprint, ...]


class Overlay:
    """A base text and the replacements that edits have made of it."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._islands: list[_Island] = []
        """In order, without overlap; their ends are in order, too."""
        self._inserted: dict[int, dict[str, dict[bytes, Footprint]]] = {}
        """The footprints that insert at an offset, by their format and what they insert."""
        self._points: list[int] = []
        self._meanings: dict[tuple[object, tuple[Hunk, ...]], str] = {}
        self._patches: list[Patch] = []
        self._text: bytes | None = base

    def text(self) -> bytes:
        """The base with every replacement made."""
        if self._text is None:
            self._text = replaced(self.base, self.hunks(), 0, len(self.base))
        return self._text

    def hunks(self) -> Iterator[Hunk]:
        """The replacements, in the base's bytes and in order."""
        return (patch.hunk for patch in self._patches)

    def add(self, footprints: Sequence[Footprint]) -> Footprint | None:
        """Make an edit's replacements, which are in the base's bytes.

        Returns the earlier footprint that one of them collides with, and then changes nothing.
        What an earlier edit has replaced alike counts once; insertions at one point keep their
        order.
        """
        additions: list[tuple[Footprint, tuple[Hunk, ...]]] = []
        for footprint in footprints:
            meaning = footprint.meaning
            if meaning is not None and (meaning, footprint.hunks) in self._meanings:
                continue
            shared: set[Hunk] = set()
            for other in self._overlapping(footprint):
                agreed = _agreed(other, footprint)
                if agreed is None:
                    return other
                shared |= agreed
            hunks = footprint.hunks
            if shared:
                hunks = tuple(hunk for hunk in hunks if hunk not in shared)
            if rival := next(filter(None, (self._rival(footprint, hunk) for hunk in hunks)), None):
                return rival
            additions.append((footprint, hunks))
        for footprint, hunks in additions:
            self._occupy(footprint)
            for hunk in hunks:
                self._replace(Patch(hunk, (footprint.edit,)))
        return None

    # ------------------------------------------------------------ footprints

    def _overlapping(self, footprint: Footprint) -> Iterator[Footprint]:
        """The footprints whose hulls share a byte with that of this one, or one of which lies
        strictly inside the other."""
        for island in self._islands[self._touching(footprint)]:
            for other in island.footprints:
                if other.start < footprint.end and footprint.start < other.end:
                    yield other
        first = bisect_right(self._points, footprint.start)
        for point in self._points[first : bisect_left(self._points, footprint.end)]:
            for footprints in self._inserted[point].values():
                yield from (other for other in footprints.values() if other.start == other.end)

    def _touching(self, footprint: Footprint) -> slice:
        """The islands that overlap the footprint's hull."""
        # Edits mostly come in order.
        if not self._islands or self._islands[-1].end <= footprint.start:
            return slice(len(self._islands), len(self._islands))
        first = bisect_right(self._islands, footprint.start, key=_END)
        return slice(first, max(first, bisect_left(self._islands, footprint.end, key=_START)))

    def _rival(self, footprint: Footprint, hunk: Hunk) -> Footprint | None:
        """An earlier footprint that inserts at the same point what has no certain order with this,
        or the same: that may be meant as one insertion or as two."""
        if hunk.start < hunk.end:
            return None
        for format, footprints in self._inserted.get(hunk.start, {}).items():
            if format != footprint.format:
                return next(iter(footprints.values()))
            if hunk.new in footprints:
                return footprints[hunk.new]
        return None

    def _occupy(self, footprint: Footprint) -> None:
        if footprint.meaning is not None:
            self._meanings[footprint.meaning, footprint.hunks] = footprint.edit
        for hunk in footprint.hunks:
            if hunk.start == hunk.end:
                if hunk.start not in self._inserted:
                    insort(self._points, hunk.start)
                footprints = self._inserted.setdefault(hunk.start, {})
                footprints.setdefault(footprint.format, {})[hunk.new] = footprint
        if footprint.start < footprint.end:
            where = self._touching(footprint)
            met = self._islands[where]
            self._islands[where] = [
                _Island(
                    min([footprint.start, *map(_START, met)]),
                    max([footprint.end, *map(_END, met)]),
                    (*(other for island in met for other in island.footprints), footprint),
                )
            ]

    def _replace(self, patch: Patch) -> None:
        if not self._patches or self._patches[-1].hunk.end < patch.hunk.start:
            self._patches.append(patch)
        else:
            insort(self._patches, patch, key=lambda other: (other.hunk.start, other.hunk.end))
        self._text = None

    # ------------------------------------------------------------ what needs earlier edits

    def fold(self, edit: str, format: str, hunks: Sequence[Hunk], quoted: Hunk) -> tuple[str, ...]:
        """Make replacements that are in the bytes of `text()`; returns the edits that wrote what
        the edit quotes there (the bytes `quoted.start:quoted.end`)."""
        touched, _ = self._touched(quoted)
        inside = [
            patch
            for patch, start in touched
            if not patch.hunk.new
            or (start < quoted.end and quoted.start < start + len(patch.hunk.new))
        ]
        writers = inside or [patch for patch, _ in touched] or self._patches
        needs = tuple(dict.fromkeys(name for patch in writers for name in patch.edits))
        for hunk in reversed(hunks):
            self._fold_one(edit, format, hunk)
        return needs

    def _touched(self, hunk: Hunk) -> tuple[list[tuple[Patch, int]], int]:
        """The patches that the bytes `hunk.start:hunk.end` of `text()` overlap or border on, each
        with the offset in `text()` at which its new bytes begin; and how much further than in the
        base the byte behind them is there."""
        touched, shift = [], 0
        for patch in self._patches:
            start = patch.hunk.start + shift
            if start > hunk.end:
                break
            if hunk.start <= start + len(patch.hunk.new):
                touched.append((patch, start))
            shift += len(patch.hunk.new) - (patch.hunk.end - patch.hunk.start)
        return touched, shift

    def _fold_one(self, edit: str, format: str, hunk: Hunk) -> None:
        """Make one patch of the hunk and all patches that it touches."""
        current = self.text()
        touched, shift = self._touched(hunk)
        if touched:
            (first, first_at), (last, last_at) = touched[0], touched[-1]
            last_end = last_at + len(last.hunk.new)
            left, right = min(hunk.start, first_at), max(hunk.end, last_end)
            merged = Hunk(
                first.hunk.start - (first_at - left),
                last.hunk.end + (right - last_end),
                current[left : hunk.start] + hunk.new + current[hunk.end : right],
            )
            gone = {id(patch) for patch, _ in touched}
            self._patches = [patch for patch in self._patches if id(patch) not in gone]
        else:
            merged = Hunk(hunk.start - shift, hunk.end - shift, hunk.new)
        edits = tuple(
            dict.fromkeys([*(name for patch, _ in touched for name in patch.edits), edit])
        )
        self._meanings = {meaning: by for meaning, by in self._meanings.items() if by not in edits}
        self._occupy(Footprint(edit, format, (merged,)))
        self._replace(Patch(merged, edits))


def _agreed(one: Footprint, other: Footprint) -> set[Hunk] | None:
    """The hunks that both make alike where their hulls overlap; None when they cannot both
    stand."""
    start, end = max(one.start, other.start), min(one.end, other.end)
    ours, theirs = _within(one, start, end), _within(other, start, end)
    return None if ours is None or ours != theirs else ours


def _within(footprint: Footprint, start: int, end: int) -> set[Hunk] | None:
    """The hunks inside `start:end`; None when one of them crosses its border."""
    inside = set()
    for hunk in footprint.hunks:
        if (hunk.end <= start and hunk.start < start) or (hunk.start >= end and hunk.end > end):
            continue
        if hunk.start < start or hunk.end > end:
            return None
        inside.add(hunk)
    return inside
