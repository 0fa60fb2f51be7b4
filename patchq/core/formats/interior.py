"""What a fence that is tied to a path holds: edits, other text, or edits in a further fence.

A document about edits is a file's text, and nothing in it is an edit; a fence that holds nothing
else is edits.  So before a fence is taken for one or the other, its lines are read as a response's
would be, by the formats themselves, and what they find is counted and left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial
from itertools import compress

from patchq.core.formats.catalogue import NOTHING, Beginning
from patchq.core.formats.format import Document, Inside, Piece, UnreadableEdit
from patchq.core.formats.marks.blocks import block_at, opening
from patchq.core.formats.marks.lines import DIFF_ENDINGS, Fence, FenceLines, fence, line_above
from patchq.core.formats.marks.parts import end_of_fence
from patchq.core.formats.marks.paths import path_line
from patchq.core.formats.marks.ties import is_named
from patchq.core.text.patterns import Pattern

_KEY = Pattern(
    r"[\"'](?:old_?str(?:ing)?|new_?str(?:ing)?|file_text|insert_line|edits|contextualEdits|"
    r"searchPattern|command|arguments|content|anchor|target)[\"']\s*:",
    re.IGNORECASE,
)
"""Edits in JSON have one of these."""


class Looker:
    """Looks into fences; `may_begin` tells at a glance whether anything may begin on a line,
    `begins` what does on such a one."""

    def __init__(
        self, begins: Callable[[str], Beginning], may_begin: Callable[[str], object]
    ) -> None:
        self.begins = begins
        self.may_begin = may_begin

    def __call__(self, doc: Document, i: int, mark: Fence, path: str) -> Inside:
        return _Look(self, doc, i, mark, path).run()


class _Marks:
    """The fence lines of a document, found once."""

    def __init__(self, doc: Document) -> None:
        self.found = FenceLines(doc.lines)


class _Look:
    """One look.  Blocks may hold fence lines, so they are read in the whole text; all else in what
    stands before the fence's first possible end, so that no look costs more than the fence."""

    def __init__(self, looker: Looker, doc: Document, i: int, mark: Fence, path: str) -> None:
        self.begins = looker.begins
        self.may_begin = looker.may_begin
        self.doc = doc
        self.lines = doc.lines
        self.mark = mark
        self.first = self.low = i + 1
        stop = end_of_fence(doc.lines, i, mark)
        self.part = Document(doc.lines[self.first : stop], doc.known.base, path)
        self.is_diff = path.endswith(DIFF_ENDINGS)
        self.open = [mark]
        """The fences that only a bare line of their length closes, the innermost last."""
        self.inner: Fence | None = None
        """A shorter fence inside of those, or one of another kind."""
        self.inner_text = self.inner_edits = False
        self.text: set[int] = set()
        self.at: int | None = None
        """The first line of edits that stand in no further fence."""
        self.nested = self.broken = self.damaged = False
        """Whether an edit cannot be read; whether nothing before it says that it is only shown."""

    def run(self) -> Inside:
        i = self.first
        while (i := self._plain(i)) < len(self.lines):
            mark = fence(self.lines[i])
            if mark and self.inner is None and self.open[-1].closed_by(mark):
                self.open.pop()
                if not self.open:
                    return self._inside(i)
                self._leave()
                i += 1
            else:
                i = self._step(i, mark)
            if self.damaged:
                break
        return self._inside(None)

    def _plain(self, i: int) -> int:
        """Take in the lines from `i` on, on which nothing begins; the index of the first other."""
        lines, indices = self.lines, range(i, len(self.lines))
        begun = compress(indices, map(self.may_begin, map(lines.__getitem__, indices)))
        j = next((k for k in begun if self.begins(lines[k]) is not NOTHING), len(lines))
        # Edits take what stands right above them at most, so the first line tells.
        first = next((k for k in range(i, j) if lines[k] and not lines[k].isspace()), None)
        if first is not None:
            self._say(first)
        return j

    def _inside(self, end: int | None) -> Inside:
        return Inside(end, self.at, self.nested, bool(self.text) and not self.damaged)

    def _step(self, i: int, mark: Fence | None) -> int:
        """Look at line `i`, which does not end the fence; the index of the line to go on with."""
        blank = not self.lines[i].strip()
        deep = self.inner is not None or len(self.open) > 1
        if not blank and (found := self._edits(i, mark)):
            self.nested = self.nested or deep or mark is not None
            self.inner_edits = self.inner_edits or deep
            if not (deep or mark):
                self._met(i)
            self.text.difference_update(found)
            self.low = found.stop
            self.part.low = found.stop - self.first
            return found.stop
        if mark:
            self._fence(mark)
        elif not blank:
            self._say(i)
        return i + 1

    def _say(self, found: int) -> None:
        """Take in a line that holds text."""
        if self.inner is not None or len(self.open) > 1:
            self.inner_text = True
        else:
            self.text.add(found)

    def _fence(self, mark: Fence) -> None:
        """Go into a further fence, or out of it."""
        outer = self.open[-1]
        if self.inner is not None:
            if self.inner.closed_by(mark) or outer.closed_by(mark):
                self.inner = None
                self._leave()
            return
        self.inner_edits = is_named(mark)
        self.nested = self.nested or self.inner_edits
        if mark.info and mark.kind == outer.kind and mark.length >= outer.length:
            self.open.append(mark)
        elif not mark.closing:
            self.inner = mark

    def _leave(self) -> None:
        """A further fence ends: one without edits is text like any other."""
        if self.inner_text and not self.inner_edits:
            self.text.add(-1)
        self.inner_text = self.inner_edits = False

    def _edits(self, i: int, mark: Fence | None) -> range | None:
        """The lines of the edits that begin on line `i`; once some are damaged, none are sought."""
        begun = self.begins(self.lines[i])
        if self.broken or not begun.reads:
            return None
        try:
            return self._block(i) if opening(self.lines[i]) else self._other(i, begun)
        except UnreadableEdit:
            self.broken, self.damaged = True, not self.text
            self._met(i)
            return None

    def _met(self, i: int) -> None:
        self.at = i if self.at is None else self.at

    def _block(self, i: int) -> range | None:
        """The block that opens on line `i`, with the line above it that names its file."""
        marker = opening(self.lines[i])
        if marker is None:
            return None
        marks = self.doc.memory[_Marks].found
        inner = partial(marks.end_of_inner, outer=self.mark) if self.mark.length > 3 else None
        block = block_at(self.lines, i, marker, inner)
        above = line_above(self.lines, i, self.low)
        named = above >= self.low and path_line(self.lines[above], self.doc.known)
        return range(above if named else i, block.end + 1)

    def _other(self, i: int, begun: Beginning) -> range | None:
        """The edits of another form that begin on line `i`."""
        at = i - self.first
        if at >= len(self.part.lines) or (begun.skips and begun.skips(self.part, at)):
            return None
        if self.lines[i].lstrip()[0] in "{[\"'" and not self.keyed:
            return None
        pieces = (read(self.part, at) for read in begun.reads)
        piece = next((one for one in pieces if one and self._counts(one)), None)
        if piece is None:
            return None
        return range(i if piece.top is None else piece.top + self.first, piece.end + self.first)

    def _counts(self, piece: Piece) -> bool:
        """Whether the piece holds edits, and is not the diff that the file is."""
        return any(not (self.is_diff and edit.format == "unified_diff") for edit in piece.edits)

    @cached_property
    def keyed(self) -> bool:
        """Whether JSON in the fence may hold edits."""
        return any(map(_KEY.search, self.part.lines))
