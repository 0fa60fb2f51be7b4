"""Reading a whole response: who takes which lines, and what is left as prose.

Every line that may begin something is offered to the formats in a fixed order; the first that
begins there takes its lines.  The forms that may be a mere excerpt are asked in a second round,
when nobody else has found an edit.  What is left is looked through once more for anything that
resembles an edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from patchq.formats import leftovers as foreign
from patchq.formats.beginnings import NOTHING, Beginning, begins
from patchq.formats.document import Document, Piece
from patchq.formats.envelope.thinking import (
    blank_thought,
    closes_thought,
    opens_thought,
    without_close,
)
from patchq.formats.marks.blocks import check_marker, is_cut
from patchq.formats.marks.fences import fence
from patchq.formats.marks.headings import line_above
from patchq.formats.marks.paths import Known, path_line
from patchq.formats.relations import Stated
from patchq.formats.search_replace import Blocks
from patchq.formats.unreadable import Unreadable
from patchq.formats.whole_file import reading as whole_file
from patchq.model.ops import Create, Rename, Write
from patchq.model.values import Edit, Problem


@dataclass
class Reading:
    """What a text holds: edits without ids of their own have none yet."""

    edits: list[Edit] = field(default_factory=list)
    stated: dict[int, Stated] = field(default_factory=dict)
    """What the edits, by their index, say of each other."""
    prose: str = ""
    summary: str | None = None
    author: str | None = None
    warnings: list[Problem] = field(default_factory=list)

    def take(self, edits: Iterable[Edit], stated: Mapping[int, Stated]) -> None:
        """Take in further edits, and what they say of each other."""
        first = len(self.edits)
        for i, said in stated.items():
            self.stated[first + i] = replace(said, group=first + said.group)
        self.edits += edits


def read(text: str, known: Known, default_path: str | None = None) -> Reading:
    """The edits of `text` in order, and the prose round them; raises `Unreadable`.

    A text all of whose lines end in CRLF got these on its way: they are no part of the edits.  (The
    blank lines that stand for the front matter end in LF.)
    """
    if "\r\n" in text and text.lstrip("\n").count("\n") == text.count("\r\n"):
        text = text.replace("\r\n", "\n")
    met: dict[str, Beginning] = {}
    first = _Reader(Document(text.split("\n"), known, default_path), met, quoting=False)
    first.read()
    if first.found.edits or not first.quotes:
        return first.finish()
    second = _Reader(Document(text.split("\n"), known, default_path), met, quoting=True)
    second.read()
    return second.finish()


class _Reader:
    def __init__(self, doc: Document, met: dict[str, Beginning], *, quoting: bool) -> None:
        self.doc = doc
        self.met = met
        """What may begin on the lines that were met."""
        self.blocks = Blocks(self.doc)
        self.quoting = quoting
        """Whether to take what may be a mere excerpt for a file's text."""
        self.found = Reading()
        self.prose: list[tuple[int, int]] = []
        """The lines outside edits before `behind`, as runs: the first index, and that behind."""
        self.behind = 0
        """The first line (index) behind what was left out of the prose last."""
        self.quotes = False
        """Whether there is anything that would be taken otherwise with `quoting`."""
        self.drafted = False
        """Whether the text began with a thinking block whose opening tag is left out."""

    def read(self) -> None:
        i = 0
        while (i := self._next(i)) < len(self.doc.lines):
            try:
                i = self._step(i)
            except Unreadable:
                end = self._end_of_draft(i)
                if end is None:
                    raise
                self._end_of_thought(end)
                i = end
        self._check_end()

    def _next(self, i: int) -> int:
        """The index of the first line from `i` on, where something may begin; the lines' number
        if there is none."""
        lines, met = self.doc.lines, self.met
        while i < len(lines):
            line = lines[i]
            begun = met.get(line)
            if begun is None:
                begun = met[line] = begins(line)
            if begun is not NOTHING and not (begun.json and self.doc.is_vain(i)):
                break
            i += 1
        return i

    def _step(self, i: int) -> int:
        """Read what stands on line `i` (an index); the index of the line to go on with."""
        line = self.doc.lines[i]
        begun = self.met[line]
        if piece := self._piece(i, begun):
            return self._take(piece, i)
        if begun.marker:
            if opens_thought(line):
                return self._thought(i)
            if closes_thought(line):
                self._end_of_thought(i)
                return i
            check_marker(line, i)
        if begun.mark:
            self.doc.open_fences.read(i, begun.mark)
        return i + 1

    def finish(self) -> Reading:
        """The reading, once nothing in the prose resembles an edit; raises `Unreadable`."""
        lines, wrappers = self.doc.lines, self.doc.open_fences.wrappers
        runs = [*self.prose, (self.behind, len(lines))]
        prose = [(k + 1, lines[k]) for a, b in runs for k in range(a, b) if k not in wrappers]
        if left_out := foreign.find(prose, self.doc.known):
            raise Unreadable.of(left_out)
        self.found.prose = "\n".join(line for _, line in prose).strip()
        return self.found

    def _piece(self, i: int, begun: Beginning) -> Piece | None:
        if begun.marker and (piece := self.blocks.read(i)):
            return piece
        for form in begun.forms:
            if piece := form(self.doc, i):
                self.blocks.own = None
                return piece
        if begun.mark and self.quoting:
            return self._quoted(i)
        if begun.mark and not (self.quotes or self.found.edits):
            self._skip_quoted(i)
        return None

    def _quoted(self, i: int) -> Piece | None:
        """The file whose text stands in the fence of line `i`, where that may be an excerpt."""
        piece = whole_file.read_quoting(self.doc, i)
        self.blocks.own = None if piece else self.blocks.own
        return piece

    def _skip_quoted(self, i: int) -> None:
        """Note whether a reading with `quoting`, which may come to this line as long as there are
        no edits, would find something here."""
        try:
            self.quotes = whole_file.read_quoting(self.doc, i) is not None
        except Unreadable:
            self.quotes = True

    def _take(self, piece: Piece, i: int) -> int:
        """Take in what a format has read on line `i`; the index of the line behind it."""
        doc, found = self.doc, self.found
        for edit in piece.edits:
            doc.made.update(_makes(edit))
            doc.path = edit.path
        self._leave_out(i if piece.top is None else piece.top, piece.end)
        self.prose += [(k, k + 1) for k in piece.kept]
        found.take(piece.edits, piece.stated)
        found.summary = found.summary or piece.summary
        found.author = found.author or piece.author
        found.warnings += piece.warnings
        doc.low = piece.end
        return piece.end

    def _leave_out(self, first: int, behind: int) -> None:
        """Take the lines from `first` to `behind` (indices), the last that were read, for no
        prose."""
        runs = self.prose
        runs.append((self.behind, max(first, self.behind)))
        while runs and runs[-1][1] > first:
            start, _ = runs.pop()
            runs += [(start, first)] if start < first else []
        self.behind = behind

    def _thought(self, i: int) -> int:
        end = blank_thought(self.doc.lines, i)
        if end is None:
            raise Unreadable(
                i,
                "the thinking block that opens here is not closed before the response ends",
                "send the answer alone, without the thinking before it",
                "response.truncated",
            )
        self._leave_out(i, end)
        return end

    def _end_of_draft(self, i: int) -> int | None:
        """The line that ends the thinking block in which the unreadable line `i` stands, or None.

        A model that is made to think may leave out the tag that opens.
        """
        if self.found.edits or self.drafted:
            return None
        for j in range(i, len(self.doc.lines)):
            if opens_thought(self.doc.lines[j]):
                return None
            if closes_thought(self.doc.lines[j]):
                return j
        return None

    def _end_of_thought(self, i: int) -> None:
        """Leave out what stands above line `i`, where a thinking block ends that opens nowhere."""
        if self.found.edits:
            raise Unreadable(
                i,
                "a thinking block ends here that begins nowhere, so the edits before it may be "
                "drafts",
                "send the answer alone, without the thinking before it",
            )
        lines, old = self.doc.lines, self.doc
        lines[i] = without_close(lines[i])
        self.prose.clear()
        self.behind = i
        if not self.drafted:  # what the draft opened is not open in the answer
            lines[:i] = [""] * i
            self.doc = Document(lines, old.base_has, old.default_path, low=i)
            self.blocks = Blocks(self.doc)
            self.found = Reading()
        self.drafted = True

    def _check_end(self) -> None:
        """Refuse a response that ends where a block begins: it was cut."""
        lines, low = self.doc.lines, self.doc.low
        end = line_above(lines, len(lines), low)
        if end < low:
            return
        line, mark = lines[end], fence(lines[end])
        above = line_above(lines, end, low)
        headed = above >= low and self._is_heading(lines[above])
        if mark is None:
            cut = is_cut(line, headed) or (bool(self.found.edits) and self._is_heading(line))
        else:
            cut = self.doc.open_fences.opened(end) and (bool(mark.info) or headed)
        if cut:
            raise Unreadable(
                end,
                "the response ends here, where a block begins",
                "send the whole response again; if it was cut, send fewer changes at once",
                "response.truncated",
            )

    def _is_heading(self, line: str) -> bool:
        """Whether the line is a path and nothing else, and no item of a list."""
        listed = line.lstrip().startswith(("- ", "* ", "+ ", "> "))
        return not listed and path_line(line, self.doc.known) is not None


def _makes(edit: Edit) -> Iterator[str]:
    if isinstance(edit.op, Create | Write):
        yield edit.path
    elif isinstance(edit.op, Rename):
        yield edit.op.to


def moved(edit: Edit, lines: tuple[int, int]) -> Edit:
    """The edit with its place in the response where its text stands inside JSON."""
    return replace(edit, at=lines)
