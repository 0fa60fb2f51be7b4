"""Reading a whole response: who takes which lines, and what is left as prose.

Every line that may begin something is offered to the formats in a fixed order; the first that
begins there takes its lines.  What may as well be a mere excerpt is kept as a quotation; what it is
depends on the rest of the response, and on the file.  What is left is looked through once more for
anything that resembles an edit.

Every format refuses what begins as its own and is damaged.  The last look finds what none
recognises at all: the signs that the formats name, and tags.  Landing the rest of the response
would be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress

from patchq.core.formats.catalogue import NOTHING, Beginning, Beginnings, Catalogue, Signs
from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.escaping import disguised, may_disguise, undisguised
from patchq.core.formats.format import Document, Piece, Stated, UnreadableEdit
from patchq.core.formats.interior import Looker
from patchq.core.formats.marks.blocks import is_cut, is_suspect, may_mark, opening
from patchq.core.formats.marks.carried import CarriedLines
from patchq.core.formats.marks.lines import (
    BEGIN_PATCH,
    Fence,
    OpenFences,
    fence,
    line_above,
)
from patchq.core.formats.marks.notations import check_notations, may_note
from patchq.core.formats.marks.paths import (
    Known,
    as_meant,
    is_path,
    path_line,
    path_of_info,
    paths_named,
)
from patchq.core.formats.marks.shell import ShellChange, changes_beside, may_command
from patchq.core.formats.marks.shown_pairs import check_pairs, may_tell
from patchq.core.formats.marks.statements import Setting, check_statements
from patchq.core.formats.marks.tags import (
    Tag,
    blank_channels,
    blank_thought,
    check_drafts,
    may_tag,
    stray,
)
from patchq.core.formats.marks.ties import paths_in
from patchq.core.model.ops import MAKING, Rename, halves
from patchq.core.model.values import Edit, Header, Problem, Quotation
from patchq.core.text.patterns import Pattern

_LISTED = Pattern(r"\s*(?:[-*+>•|]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s")


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
    sections: int = 0
    """The last number of a section of theirs."""
    shell: list[ShellChange] = field(default_factory=list)
    """What shell commands beside the edits would change."""
    quotations: list[Quotation] = field(default_factory=list)
    """What may as well be files as mere excerpts."""
    fences: int = 0
    """How many fences there are."""

    def add(self, part: Piece | Reading, at: tuple[int, int] | None = None) -> None:
        """Take in what stands further on; `at` is its place where its text stands inside JSON."""
        first, behind = len(self.edits), self.sections
        for i, stated in part.stated.items():
            self.stated[first + i] = replace(stated, group=first + stated.group)
        for edit in part.edits:
            section = edit.section and behind + edit.section
            if section > self.sections:
                self.sections = section
            changes = at or section != edit.section
            self.edits.append(edit.but(at=at, section=section) if changes else edit)
        self.summary = self.summary or part.summary
        self.author = self.author or part.author
        self.warnings += part.warnings
        self.shell += [replace(change, line=at[0]) for change in part.shell] if at else part.shell
        if isinstance(part, Reading):
            self.quotations += [replace(one, at=at or one.at) for one in part.quotations]
            self.fences += part.fences


def read(text: str, formats: Catalogue, known: Known, header: Header) -> Reading:
    """The edits of `text` in order, and the prose round them; raises `UnreadableEdit`.

    A text all of whose lines end in CRLF got these on its way: they are no part of the edits.  (The
    blank lines that stand for the front matter end in LF.)
    """
    if "\r\n" in text and text.lstrip("\n").count("\n") == text.count("\r\n"):
        text = text.replace("\r\n", "\n")
    begins = Beginnings(formats.begun).__getitem__
    doc = Document(text.split("\n"), known, header.file, header.whole_files)
    reader = _ResponseReader(doc, formats, begins)
    try:
        reader.read()
        return reader.finish(header)
    except UnreadableEdit as error:
        raise error.written_as(next((e.format for e in reader.found.edits), None)) from None


class _ResponseReader:
    def __init__(
        self,
        doc: Document,
        formats: Catalogue,
        begins: Callable[[str], Beginning],
    ) -> None:
        self.doc = doc
        self.formats = formats
        doc.look = Looker(begins, formats.may_begin)
        self.begins = begins
        """What begins on a line on which something may begin, remembered."""
        self.carried = CarriedLines(doc.lines)
        self.found = Reading()
        self.first: int | None = None
        """The line (index) where the first edit begins."""
        self.left_out: list[range] = []
        """The lines (indices) of edits and thoughts, which are no prose."""
        self.kept: set[int] = set()
        """Those of them that are prose all the same."""
        self.doubt: UnreadableEdit | None = None
        """What refuses the response, unless what it is about turns out to be a file's text."""
        self.answered = False
        """Whether the final channel of a model's raw output was met."""
        self.quoted: list[range] = []
        """The lines of what may be mere excerpts."""

    def read(self) -> None:
        i = 0
        while (i := self._next(i)) < len(self.doc.lines):
            i = self._step(i)
        self._check_end()

    def _next(self, i: int) -> int:
        """The index of the first line from `i` on, where something may begin; the lines' number
        if there is none."""
        lines, indices = self.doc.lines, range(i, len(self.doc.lines))
        for k in compress(indices, map(self.formats.may_begin, map(lines.__getitem__, indices))):
            begun = self.begins(lines[k])
            if begun is not NOTHING and not (begun.skips and begun.skips(self.doc, k)):
                return k
        return len(lines)

    def _step(self, i: int) -> int:
        """Read what stands on line `i` (an index); the index of the line to go on with."""
        begun = self.begins(self.doc.lines[i])
        if begun.prefix and self.carried.take_off(i, begun.prefix):
            begun = self.begins(self.doc.lines[i])
        if begun.thought:
            return self._thought(i, begun.thought)
        if begun.channel:
            return self._channels(i)
        if piece := self._piece(i, begun):
            return self._take(piece, i)
        if begun.mark:
            self.doc.open_fences.read(i, begun.mark)
        return i + 1

    def finish(self, header: Header) -> Reading:
        """The reading, once nothing in the prose resembles an edit, or front matter that would be
        lost; raises `UnreadableEdit`."""
        if self.doubt is not None:
            raise self.doubt
        above = [] if header.blank else self.doc.lines[: self.first or 0]
        may_be_lost = front_matter.may_be_further_down(above)
        if may_be_lost and (lost := front_matter.further_down(self._before_edits())):
            raise UnreadableEdit.of(lost)
        prose = self._prose()
        unread = self._without_quoted(prose)
        text = "\n".join(compress(self.doc.lines, unread))
        if text and not text.isspace():
            self._check_prose(text, [*compress(enumerate(self.doc.lines, 1), unread)])
        if self.found.edits and self.quoted:
            text = "\n".join(compress(self.doc.lines, prose))
        self.found.prose = text.strip()
        self.found.fences = self.doc.open_fences.count
        return self.found

    def _prose(self) -> bytearray:
        """For each line whether it is prose."""
        prose = bytearray(b"\1") * len(self.doc.lines)
        for lines in self.left_out:
            prose[lines.start : lines.stop] = bytes(len(lines))
        for k in self.kept:
            prose[k] = 1
        for k in self.doc.open_fences.wrappers:
            prose[k] = 0
        return prose

    def _without_quoted(self, prose: bytearray) -> bytearray:
        """For each line whether it is prose, and of no quotation."""
        unread = prose[:] if self.quoted else prose
        for lines in self.quoted:
            unread[lines.start : lines.stop] = bytes(len(lines))
        return unread

    def _check_prose(self, text: str, unread: Sequence[tuple[int, str]]) -> None:
        """Refuse lines (number, text) that make `text` where they resemble an edit, or show a
        change; and take in what commands in them would change."""
        signs = self.formats.signs
        if signs.may_stand(text) and (problem := unread_edit(unread, signs)):
            raise UnreadableEdit.of(problem)
        if may_disguise(text) and self._may_mark(undisguised(text)):
            self._check_disguises(unread)
        if may_note(text):
            self._check_notations(unread)
        fences = self.doc.open_fences.count
        if self.found.edits and fences and (fences > 1 or may_tell(text)):
            self._check_pairs(unread)
        self._check_statements(text, unread)
        if may_tag(text):
            self._check_drafts(unread)
        if may_command(text):
            self.found.shell += changes_beside(unread)

    def _may_mark(self, text: str) -> bool:
        """Whether a line of a text may resemble an edit."""
        return may_mark(text) or self.formats.signs.may_stand(text)

    def _check_disguises(self, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse what resembles an edit once the escapes on its line are undone."""
        for number, line in prose:
            for piece in disguised(line):
                marked = opening(piece) or is_suspect(piece) or piece.startswith(BEGIN_PATCH)
                if marked or unread_edit([(number, piece)], self.formats.signs):
                    raise UnreadableEdit(
                        number - 1,
                        f"this looks like part of an edit that was escaped: {line.strip()[:40]!r}",
                        "send the edits as they are meant: `<` and `>` as such, each line ended by "
                        "a newline",
                    )

    def _check_notations(self, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse what is an edit in the notation of another tool."""
        places, known, shown = self._places(), self.doc.known, self._shown()
        check_notations(
            prose,
            places,
            self._is_headed,
            lambda number, token: number not in shown and is_path(token, known),
        )

    def _check_pairs(self, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse a change that is shown beside the edits, and made by none of them."""
        known = self.doc.known

        @cache
        def paths() -> list[str]:
            named = (path for _, line in prose for path in paths_named(line, known))
            meant = (as_meant(path, known) for path in named)
            return list(dict.fromkeys([*(edit.path for edit in self.found.edits), *meant]))

        check_pairs(
            prose,
            lambda quote: any(self.doc.holds(path, quote) for path in paths()),
            [halves(edit.op) for edit in self.found.edits],
        )

    def _check_statements(self, text: str, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse a change that is stated in no form of edits."""
        places, known = self._places(), self.doc.known
        check_statements(
            text,
            prose,
            Setting(
                lambda path: known.base.has(as_meant(path, known)),
                known.base.has_directory,
                known.base.text,
                lambda line: paths_in(line, known),
                [
                    run
                    for run in self.doc.open_fences.closed
                    if bisect_left(places, run.start) == bisect_left(places, run.stop)
                ],
                self.found.edits,
            ),
        )

    def _check_drafts(self, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse a draft beside the edits; tags that are quoted in a fence are none."""
        shown = self._shown()
        check_drafts((line for line in prose if line[0] not in shown), self._places())

    def _places(self) -> list[int]:
        """The lines (numbers) on which edits begin."""
        return sorted(edit.at[0] for edit in self.found.edits)

    def _shown(self) -> set[int]:
        """The lines (numbers) of the fences that hold no edit."""
        places = self._places()
        return {
            number
            for run in self.doc.open_fences.closed
            if bisect_left(places, run.start) == bisect_left(places, run.stop)
            for number in run
        }

    def _is_headed(self, i: int) -> bool:
        """Whether a path, and nothing else, stands above line `i`, or above the fence over it."""
        above = line_above(self.doc.lines, i, 0)
        if above >= 0 and (mark := fence(self.doc.lines[above])):
            if path_of_info(mark.info, self.doc.known):
                return True
            above = line_above(self.doc.lines, above, 0)
        return above >= 0 and path_line(self.doc.lines[above], self.doc.known) is not None

    def _before_edits(self) -> Iterator[tuple[int, str]]:
        """The lines (number, text) before the first edit, outside of fences."""
        fences = OpenFences()
        for i, line in enumerate(self.doc.lines[: self.first or 0]):
            if mark := fence(line):
                fences.read(i, mark)
            elif not fences.are_open:
                yield i + 1, line

    def _piece(self, i: int, begun: Beginning) -> Piece | None:
        """What the first format that begins on line `i` has read there."""
        for read in begun.reads:
            try:
                if piece := read(self.doc, i):
                    return piece
            except UnreadableEdit as error:
                raise error.written_as(self.formats.owners[read]) from None
        return None

    def _take(self, piece: Piece, i: int) -> int:
        """Take in what a format has read on line `i`; the index of the line behind it."""
        doc = self.doc
        if piece.quotation:
            return self._quote(piece, piece.quotation)
        for edit in piece.edits:
            if isinstance(edit.op, MAKING):
                doc.known.made.add(edit.op.to if isinstance(edit.op, Rename) else edit.path)
            doc.path = edit.path
            doc.edited.add(edit.path)
        top = i if piece.top is None else piece.top
        self.first = top if self.first is None else self.first
        self.left_out.append(range(top, piece.end))
        self.kept.update(piece.kept)
        self.found.add(piece)
        doc.low = piece.end
        return piece.end

    def _quote(self, piece: Piece, quotation: Quotation) -> int:
        """Take in what may be a mere excerpt, which no edit is told apart by."""
        start, end = quotation.at[0] - 1, quotation.at[1] - 1
        for k in (start, end):
            if mark := fence(self.doc.lines[k]):
                self.doc.open_fences.read(k, mark)
        self.quoted.append(range(start if piece.top is None else piece.top, piece.end))
        self.found.quotations.append(quotation)
        return piece.end

    def _thought(self, i: int, tag: Tag) -> int:
        """Leave out the thinking block whose tag stands on line `i`."""
        if tag.closes:
            self.doubt = self.doubt or stray(i)
            return i + 1
        end = blank_thought(self.doc.lines, i, tag)
        if end is None:
            self.doubt = self.doubt or UnreadableEdit.cut(
                i,
                "the thinking block that opens here is not closed before the response ends",
                "send the answer alone, without the thinking before it",
            )
            return len(self.doc.lines)
        self.left_out.append(range(i, end))
        return end

    def _channels(self, i: int) -> int:
        """Leave out what a model's raw output says from line `i` on, but for its final channel."""
        if self.answered:
            raise UnreadableEdit(
                i,
                "a second message of the model's raw output begins here behind its final one",
                "send the final message alone",
            )
        self.answered = True
        end = blank_channels(self.doc.lines, i)
        self.left_out.append(range(i, end))
        return end

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
            # A path that is one of several, line by line, is an item of a list.
            begins = bool(self.found.edits) and not headed and self._is_heading(line)
            cut = is_cut(line, headed) or begins
        else:
            cut = self.doc.open_fences.opened(end) and (bool(mark.info) or headed)
        if cut:
            raise UnreadableEdit.cut(end, "the response ends here, where a block begins")

    def _is_heading(self, line: str) -> bool:
        """Whether the line is a path and nothing else, and no item of a list."""
        listed = _LISTED.match(line)
        return not listed and path_line(line, self.doc.known) is not None


# ---------------------------------------------------------------- a last look at the prose


def unread_edit(prose: Iterable[tuple[int, str]], signs: Signs) -> Problem | None:
    """The first line of the prose (number, text) that resembles an edit, as a problem."""
    reader = _ProseReader(signs)
    reader.read(prose)
    return reader.found


class _ProseReader:
    """Reads prose line by line; `found` is the first line that is none, with what it is."""

    def __init__(self, signs: Signs) -> None:
        self.signs = signs
        self.found: Problem | None = None
        self.fences = OpenFences()
        self.language = ""
        """The language of the open fence, where it may be one of signs."""
        self.met: set[str] = set()
        """What signs have to stand behind, as far as it was met."""
        self.number = 0

    def read(self, prose: Iterable[tuple[int, str]]) -> None:
        """Take in the lines up to the first that is none of prose."""
        mark_of = cache(self.signs.mark)
        for number, line in prose:
            self.number = number
            marked = mark_of(line)
            if marked is None:
                continue
            if marked and (mark := fence(line)):
                self._fence(mark)
            elif marked or self.language:
                self._line(line, marked)
            if self.found:
                return

    def _find(self, number: int, what: str, hint: str, format: str | None = None) -> None:
        if self.found is None or number < (self.found.line or 0):
            message = f"line {number}, column 1: this looks like {what}, but cannot be read as one"
            self.found = Problem(
                "response.unreadable_edit", message, hint, line=number, format=format
            )

    def _fence(self, mark: Fence) -> None:
        language = mark.info.split(" ")[0].lower() if self.fences.read(self.number, mark) else ""
        self.language = language if language in self.signs.languages else ""

    def _line(self, line: str, marked: bool) -> None:
        for sign, hint, form in self.signs.fenced if self.language else ():
            if self.language in sign.languages and re.match(sign.pattern, line):
                self._find(self.number, sign.what, hint, form)
        for sign, hint, own in self.signs.others if marked else ():
            if sign.behind and re.search(sign.behind, line):
                self.met.add(sign.behind)
            seek = re.search if sign.anywhere else re.match
            if (not sign.behind or sign.behind in self.met) and seek(sign.pattern, line):
                self._find(self.number, sign.what, hint, own)
