"""Reading a whole response: who takes which lines, and what is left as prose.

Every line is offered to the formats in a fixed order; the first that begins there takes its lines.
The forms that may be a mere excerpt are asked only in a second round, when nobody else has found an
edit.  What is left is looked through once more for anything that resembles an edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from patchq.envelope.wrappers import (
    blank_thought,
    closes_thought,
    opens_thought,
    without_close,
)
from patchq.formats import find_replace, foreign, json_edits, unified_diff, v4a, whole_file
from patchq.formats.blocks import Unreadable, is_cut, is_suspect
from patchq.formats.document import Document, Piece
from patchq.formats.fences import fence
from patchq.formats.headings import line_above
from patchq.formats.paths import Known, path_line
from patchq.formats.relations import Stated
from patchq.formats.search_replace import Blocks
from patchq.model import Edit, Problem
from patchq.ops import Create, Rename, Write

Read = Callable[[Document, int], Piece | None]

FORMS: tuple[Read, ...] = (
    v4a.read, unified_diff.read, json_edits.read, find_replace.read, whole_file.read,
)  # fmt: skip
PROSE = re.compile(
    r"\s*(?:(?!Bi|[Cc][Hh]|di|E|[Ff][Ii`*_]|Fr|[Rr][Ee`*_])[^\W\d_]"
    r"|[)(}=/.,;:!?]|[^{\[]?\s*\Z)"
)
"""A line on which nothing begins: no marker, label, header or fence starts so."""
_JSON_OR_FENCE = re.compile(r"\s*[{\[]| {0,3}(?:`{3,}|~{3,})[ \t]*\Z")
"""A line on which only JSON, or what stands in a fence without an info, can begin."""
_OF_BARE_FENCES = (json_edits.read, whole_file.read_quoting)
_HINT = "expected a whole block: `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, "


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
    first = _Reader(text, known, default_path, FORMS)
    first.read()
    if first.found.edits or not first.fenced:
        return first.finish()
    second = _Reader(text, known, default_path, (*FORMS, whole_file.read_quoting))
    second.read()
    return second.finish()


class _Reader:
    def __init__(
        self, text: str, known: Known, default_path: str | None, forms: tuple[Read, ...]
    ) -> None:
        self.doc = Document(text.split("\n"), known, default_path)
        self.blocks = Blocks(self.doc)
        self.forms = forms
        self.fence_forms = tuple(form for form in forms if form in _OF_BARE_FENCES)
        self.found = Reading()
        self.prose: list[tuple[int, str]] = []
        """The lines outside edits, with their numbers."""
        self.fenced = False
        """Whether a fence line was met outside of edits: without one, nothing is a mere excerpt."""
        self.drafted = False
        """Whether the text began with a thinking block whose opening tag is left out."""

    def read(self) -> None:
        i = 0
        while i < len(self.doc.lines):
            try:
                i = self._step(i)
            except Unreadable:
                end = self._end_of_draft(i)
                if end is None:
                    raise
                self._end_of_thought(end)
                i = end
        self._check_end()

    def _step(self, i: int) -> int:
        """Read what stands on line `i` (an index); the index of the line to go on with."""
        line = self.doc.lines[i]
        if PROSE.match(line):
            self.prose.append((i + 1, line))
            return i + 1
        if piece := self._piece(i):
            return self._take(piece)
        if opens_thought(line):
            return self._thought(i)
        if closes_thought(line):
            self._end_of_thought(i)
            return i
        self._prose(i)
        return i + 1

    def finish(self) -> Reading:
        """The reading, once nothing in the prose resembles an edit; raises `Unreadable`."""
        wrappers = self.doc.open_fences.wrappers
        prose = [(number, line) for number, line in self.prose if number - 1 not in wrappers]
        if left_out := foreign.find(prose, self.doc.known):
            raise Unreadable.of(left_out)
        self.found.prose = "\n".join(line for _, line in prose).strip()
        return self.found

    def _piece(self, i: int) -> Piece | None:
        bare = _JSON_OR_FENCE.match(self.doc.lines[i])
        if not bare and (piece := self.blocks.read(i)):
            return piece
        for form in self.fence_forms if bare else self.forms:
            if piece := form(self.doc, i):
                self.blocks.own = None
                return piece
        return None

    def _take(self, piece: Piece) -> int:
        """Take in what a format has read; the index of the line behind it."""
        doc, found = self.doc, self.found
        for edit in piece.edits:
            doc.made.update(_makes(edit))
            doc.path = edit.path
        if piece.top is not None:
            while self.prose and self.prose[-1][0] > piece.top:
                self.prose.pop()
            self.prose += [(i + 1, doc.lines[i]) for i in piece.kept]
        found.take(piece.edits, piece.stated)
        found.summary = found.summary or piece.summary
        found.author = found.author or piece.author
        found.warnings += piece.warnings
        doc.low = piece.end
        return piece.end

    def _prose(self, i: int) -> None:
        line = self.doc.lines[i]
        if is_suspect(line):
            raise Unreadable(
                i,
                f"{line.strip()[:40]!r} stands outside a block",
                f"{_HINT}`>>>>>>> REPLACE`, each marker alone on its line and at its start",
            )
        if mark := fence(line):
            self.fenced = True
            self.doc.open_fences.read(i, mark)
        self.prose.append((i + 1, line))

    def _thought(self, i: int) -> int:
        end = blank_thought(self.doc.lines, i)
        if end is None:
            raise Unreadable(
                i,
                "the thinking block that opens here is not closed before the response ends",
                "send the answer alone, without the thinking before it",
                "response.truncated",
            )
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
