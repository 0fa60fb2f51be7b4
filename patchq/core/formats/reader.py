"""Reading a whole response: who takes which lines, and what is left as prose.

Every line that may begin something is offered to the formats in a fixed order; the first that
begins there takes its lines.  A fence under a mere path is kept: it is a file if the response has
no other edit.  What is left is prose, and is looked through for anything that resembles an edit.

Every format refuses what begins as its own and is damaged.  The last look finds what none
recognises at all: the signs that the formats name, and tags.  Landing the rest of the response
would be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import compress

from msgspec.structs import replace

from patchq.core.formats import account
from patchq.core.formats.catalogue import NOTHING, Beginning, Beginnings, Catalogue, Signs
from patchq.core.formats.envelope import front_matter
from patchq.core.formats.format import Document, FenceUnderPath, Piece, Stated, UnreadableEdit
from patchq.core.formats.marks.blocks import is_cut, is_suspect, opening
from patchq.core.formats.marks.carried import CarriedLines
from patchq.core.formats.marks.lines import (
    BEGIN_PATCH,
    Fence,
    OpenFences,
    fence,
    line_above,
)
from patchq.core.formats.marks.paths import Known, path_line
from patchq.core.formats.marks.tags import (
    Tag,
    blank_channels,
    blank_thought,
    may_tag,
    stray,
    stray_end,
)
from patchq.core.model.ops import MAKING, Rename
from patchq.core.model.values import Edit, Header, Problem, ShownPlace

_LISTED = re.compile(r"\s*(?:[-*+>•|]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s")


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
    shown: list[ShownPlace] = field(default_factory=list)
    """What stands beside the edits and may have been meant as one."""
    named: list[str] = field(default_factory=list)
    """The paths of the base that the prose names, where something is shown."""
    under_paths: list[FenceUnderPath] = field(default_factory=list)
    """Fences under a mere path: files, if there is no edit of another format."""

    def add(self, part: Piece | Reading, at: tuple[int, int] | None = None) -> None:
        """Take in what stands further on; `at` is its place where its text stands inside JSON."""
        first, behind = len(self.edits), self.sections
        for i, stated in part.stated.items():
            self.stated[first + i] = stated
        for edit in part.edits:
            section = edit.section and behind + edit.section
            if section > self.sections:
                self.sections = section
            changes = at or section != edit.section
            self.edits.append(edit.but(at=at, section=section) if changes else edit)
        self.summary = self.summary or part.summary
        self.author = self.author or part.author
        self.warnings += part.warnings
        self.shown += _moved(part.shown, at) if at else part.shown
        if isinstance(part, Reading):
            self.named += part.named
            self.under_paths += [replace(one, at=at or one.at) for one in part.under_paths]


def _moved(places: Iterable[ShownPlace], at: tuple[int, int]) -> list[ShownPlace]:
    """Return what a text inside of JSON shows, on the line on which the text stands."""
    return [ShownPlace(one.what, tuple((at[0], line) for _, line in one.lines)) for one in places]


def read(
    text: str, formats: Catalogue, known: Known, header: Header, *, part: bool = False
) -> Reading:
    """The edits of `text` in order, and the prose round them; raises `UnreadableEdit`.

    `part` says that other parts of the response may hold edits.

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
        return reader.finish(header, part=part)
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
        self.under_paths: list[range] = []
        """The lines of the fences under a mere path."""
        self.places: list[range] = []
        """The lines of the edits."""

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

    def finish(self, header: Header, *, part: bool) -> Reading:
        """The reading, once nothing in the prose resembles an edit, or front matter that would be
        lost; raises `UnreadableEdit`."""
        if self.doubt is not None:
            raise self.doubt
        above = [] if header.blank else self.doc.lines[: self.first or 0]
        may_be_lost = front_matter.may_be_further_down(above)
        if may_be_lost and (lost := front_matter.further_down(self._before_edits())):
            raise UnreadableEdit.of(lost)
        prose = self._prose()
        shown = list[ShownPlace]()
        if part or self.places or self.under_paths:
            shown += account.shown(self.doc.lines, prose, self.places, self.doc.known)
        if shown:
            self.found.shown += shown
            named = account.paths_named(compress(self.doc.lines, prose), self.doc.known)
            self.found.named += dict.fromkeys(named)
        if not self.found.edits:
            for lines in self.under_paths:
                prose[lines.start : lines.stop] = bytes(len(lines))
        text = "\n".join(compress(self.doc.lines, prose))
        if text and not text.isspace():
            self._check_prose(text, [*compress(enumerate(self.doc.lines, 1), prose)])
        self.found.prose = text.strip()
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

    def _check_prose(self, text: str, prose: Sequence[tuple[int, str]]) -> None:
        """Refuse lines (number, text) that make `text` where they resemble an edit, also once the
        escapes on them are undone."""
        signs = self.formats.signs
        if signs.may_stand(text) and (problem := unread_edit(prose, signs)):
            raise UnreadableEdit.of(problem)
        if self.found.edits and may_tag(text):
            end = stray_end(prose)
            if end is not None and self.first is not None and self.first < end:
                raise stray(end - 1)
        if "&" not in text and "\\" not in text:
            return
        for number, line in prose:
            plain = unescaped(line)
            if plain != line and (opening(plain.strip()) or is_suspect(plain) or begins(plain)):
                raise UnreadableEdit(
                    number - 1,
                    f"this looks like part of an edit that was escaped: {line.strip()[:40]!r}",
                    "send the edits as they are meant: `<` and `>` as such",
                )

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
        if piece.under_path:
            return self._keep_under_path(piece, piece.under_path)
        for edit in piece.edits:
            if isinstance(edit.op, MAKING):
                doc.known.made.add(edit.op.to if isinstance(edit.op, Rename) else edit.path)
            doc.path = edit.path
            doc.edited.add(edit.path)
        top = i if piece.top is None else piece.top
        self.first = top if self.first is None else self.first
        self.left_out.append(range(top, piece.end))
        if piece.edits:
            self.places.append(range(top, piece.end))
        self.kept.update(piece.kept)
        self.found.add(piece)
        doc.low = piece.end
        return piece.end

    def _keep_under_path(self, piece: Piece, under: FenceUnderPath) -> int:
        """Keep a fence that is a file if the response has no other edit."""
        start, end = under.at[0] - 1, under.at[1] - 1
        for k in (start, end):
            if mark := fence(self.doc.lines[k]):
                self.doc.open_fences.read(k, mark)
        self.under_paths.append(range(start if piece.top is None else piece.top, piece.end))
        self.found.under_paths.append(under)
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


_ENTITY = re.compile(r"&(?:amp;)*(lt|gt|#0*60|#0*62|#x0*3c|#x0*3e);|\\([<>])", re.IGNORECASE)
_SIGNS = {"lt": "<", "<": "<", "60": "<", "3c": "<"}


def unescaped(line: str) -> str:
    """Return the line with the entities for `<` and `>`, and backslashes before them, undone."""
    return _ENTITY.sub(_sign, line) if "&" in line or "\\" in line else line


def _sign(match: re.Match[str]) -> str:
    return _SIGNS.get((match[1] or match[2]).lower().lstrip("#x0"), ">")


def begins(line: str) -> bool:
    """Return whether a V4A patch begins on the line."""
    return line.lstrip().startswith(BEGIN_PATCH)


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
