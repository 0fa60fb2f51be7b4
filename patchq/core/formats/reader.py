"""Reading of a whole response into edits and prose.

Every line that may begin something is offered to the formats in a fixed order; the first that
begins there takes its lines.  A fence under a mere path is kept: it is a file if the response has
no other edit.  What is left is prose, and is looked through for anything that resembles an edit.

Every format refuses what begins as its own and is damaged.  The last look finds what none
recognises at all: the signs that the formats name, and tags.  Landing the rest of the response
would be a silent partial apply, so all of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress

from patchq.core.formats import account
from patchq.core.formats.catalogue import NOTHING, Catalogue
from patchq.core.formats.envelope import front_matter
from patchq.core.formats.format import Document, Piece, Reading, UnreadableEdit
from patchq.core.formats.marks.blocks import CarriedLines, is_cut, is_marker, opening
from patchq.core.formats.marks.fences import line_above
from patchq.core.formats.marks.paths import Known
from patchq.core.formats.marks.tags import (
    Tag,
    blank_channels,
    blank_thought,
    may_tag,
    stray,
    stray_end,
)
from patchq.core.model.ops import MAKING, Rename
from patchq.core.model.values import Header

_LISTED = re.compile(r"\s*(?:[-*+>•|]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s")


def read(
    text: str, formats: Catalogue, known: Known, header: Header, *, part: bool = False
) -> Reading:
    """Return the edits of `text` in order, and the prose round them.

    Raises `UnreadableEdit`.
    `part` says that other parts of the response may hold edits.

    A text all of whose lines end in CRLF got these on its way: they are no part of the edits.  (The
    blank lines that stand for the front matter end in LF.)
    """
    if "\r\n" in text and text.lstrip("\n").count("\n") == text.count("\r\n"):
        text = text.replace("\r\n", "\n")
    doc = Document(text.split("\n"), known, header.file, header.whole_files)
    reader = _ResponseReader(doc, formats)
    try:
        reader.read()
        return reader.finish(header, part=part)
    except UnreadableEdit as error:
        raise error.written_as(next((e.format for e in reader.found.edits), None)) from None


class _ResponseReader:
    def __init__(self, doc: Document, formats: Catalogue) -> None:
        self.doc = doc
        self.formats = formats
        self.carried = CarriedLines(doc)
        self.found = Reading()
        self.first: int | None = None  # the line (index) where the first edit begins
        # The lines (indices) of edits and thoughts, which are no prose.
        self.left_out: list[range] = []
        self.answered = False  # true if the final channel of a model's raw output was met
        self.under_paths: list[range] = []  # the lines of the fences under a mere path
        self.places: list[range] = []  # the lines of the edits

    def read(self) -> None:
        lines, i = self.doc.lines, 0
        while i < len(lines):
            rest = range(i, len(lines))
            for i in compress(rest, map(self.formats.may_begin, map(lines.__getitem__, rest))):
                if self.formats.beginning_of_match(lines[i]) is not NOTHING:
                    break
            else:
                break
            i = self._step(i)
        self._check_end()

    def _step(self, i: int) -> int:
        """Read what is on line `i`, and return the index to continue with."""
        beginning = self.formats.beginning_of_match(self.doc.lines[i])
        if beginning.prefix:
            self.carried.take_off(i, beginning.prefix)
            line = self.doc.lines[i]
            may = self.formats.may_begin(line)
            beginning = self.formats.beginning_of_match(line) if may else NOTHING
        if beginning.thought:
            return self._thought(i, beginning.thought)
        if beginning.channel:
            return self._channels(i)
        for read in beginning.reads:
            try:
                if piece := read(self.doc, i):
                    return self._take(piece, i)
            except UnreadableEdit as error:
                raise error.written_as(self.formats.owners[read]) from None
        if beginning.fences:
            self.doc.fences.read(i)
        return i + 1

    def _take(self, piece: Piece, i: int) -> int:
        """Record a piece read on line `i`, and return the index behind it."""
        doc, top = self.doc, i if piece.top is None else piece.top
        if under := piece.under_path:  # a file if the response has no other edit
            for k in (under.at[0] - 1, under.at[1] - 1):
                if doc.fences.at(k):
                    doc.fences.read(k)
            self.under_paths.append(range(top, piece.end))
            self.found.under_paths.append(under)
            return piece.end
        for edit in piece.edits:
            if isinstance(edit.op, MAKING):
                doc.known.made.add(edit.op.to if isinstance(edit.op, Rename) else edit.path)
            doc.path = edit.path
            doc.changed.add(edit.path)
        self.first = top if self.first is None else self.first
        self.left_out.append(range(top, piece.end))
        if piece.edits:
            self.places.append(range(top, piece.end))
        self.found.add(piece)
        doc.low = piece.end
        return piece.end

    def _thought(self, i: int, tag: Tag) -> int:
        if tag.closes:
            raise stray(i)
        end = blank_thought(self.doc, i, tag)
        if end is None:
            raise UnreadableEdit.cut(
                i,
                "the thinking block that opens here is not closed before the response ends",
                "send the answer alone, without the thinking before it",
            )
        self.left_out.append(range(i, end))
        return end

    def _channels(self, i: int) -> int:
        """Skip a model's raw output from line `i` up to its final channel."""
        if self.answered:
            raise UnreadableEdit(
                i,
                "a second message of the model's raw output begins here behind its final one",
                "send the final message alone",
            )
        self.answered = True
        end = blank_channels(self.doc, i)
        self.left_out.append(range(i, end))
        return end

    def _check_end(self) -> None:
        """Refuse a response that was cut where a block begins."""
        doc = self.doc
        end = line_above(doc.lines, len(doc.lines), doc.low)
        if end < doc.low:
            return
        above, mark = line_above(doc.lines, end, doc.low), doc.fences.at(end)
        headed = above >= doc.low and self._is_heading(doc.lines[above])
        if mark is not None:
            cut = doc.fences.opened(end) and (bool(mark.info) or headed)
        else:
            # A path that is one of several, line by line, is an item of a list.
            begins = bool(self.found.edits) and not headed and self._is_heading(doc.lines[end])
            cut = is_cut(doc.lines[end], headed) or begins
        if cut:
            raise UnreadableEdit.cut(end, "the response ends here, where a block begins")

    def _is_heading(self, line: str) -> bool:
        """Return whether the line is only a path, and no list item."""
        return not _LISTED.match(line) and self.doc.known.on_line(line) is not None

    # ------------------------------------------------------------ the prose

    def finish(self, header: Header, *, part: bool) -> Reading:
        """Return the reading, once nothing in the prose resembles an edit or front matter.

        Raises `UnreadableEdit`.
        """
        doc, found = self.doc, self.found
        end = len(doc.lines) if part and self.first is None else self.first or 0
        may_be_lost = not header.blank and front_matter.may_be_further_down(doc.lines[:end])
        if may_be_lost and (lost := front_matter.further_down(self._unfenced(end))):
            raise UnreadableEdit.of(lost)
        prose = bytearray(b"\1") * len(doc.lines)
        for lines in self.left_out:
            prose[lines.start : lines.stop] = bytes(len(lines))
        shown = part or self.places or self.under_paths
        if shown and (places := [*account.shown(doc, prose, self.places)]):
            found.shown += places
            found.named += account.paths_named("\n".join(compress(doc.lines, prose)), doc.known)
        if not found.edits:
            for lines in self.under_paths:
                prose[lines.start : lines.stop] = bytes(len(lines))
        numbered = [*compress(enumerate(doc.lines), prose)]
        found.prose = "\n".join([line for _, line in numbered]).strip()
        if found.prose:
            self._check_prose(numbered, found.prose)
        return found

    def _unfenced(self, end: int) -> Iterator[tuple[int, str]]:
        """Yield the lines (number, text) before line `end` outside of fences."""
        fences = self.doc.fences.innermost()
        for i, line in enumerate(self.doc.lines[:end]):
            if fences[i] is None and not self.doc.fences.at(i):
                yield i + 1, line

    def _check_prose(self, prose: Sequence[tuple[int, str]], text: str) -> None:
        """Refuse a response whose prose resembles an edit, escaped or not."""
        self._check_signs(prose)
        end = stray_end(prose) if self.found.edits and may_tag(text) else None
        if end is not None and self.first is not None and self.first <= end:
            raise stray(end)
        if "&" not in text and "\\" not in text:
            return
        for i, line in prose:
            plain = unescaped(line)
            if plain != line and (opening(plain.strip()) or is_marker(plain)):
                raise UnreadableEdit(
                    i,
                    f"this looks like part of an edit that was escaped: {line.strip()[:40]!r}",
                    "send the edits as they are meant: `<` and `>` as such",
                )

    def _check_signs(self, prose: Sequence[tuple[int, str]]) -> None:
        fences, may_sign = self.doc.fences, self.formats.may_sign
        round_lines = fences.innermost()
        for i, line in prose:
            mark = round_lines[i]
            if mark is None and not may_sign(line):
                continue
            found = self.formats.sign_on(line, mark.info.split(" ")[0].lower() if mark else "")
            if found and not fences.at(i):
                sign, hint, form = found
                message = f"this looks like {sign.what}, but cannot be read as one"
                raise UnreadableEdit(i, message, hint).written_as(form)


_ENTITY = re.compile(r"&(?:amp;)*(lt|gt|#0*60|#0*62|#x0*3c|#x0*3e);|\\([<>])", re.IGNORECASE)
_LESS = ("lt", "<", "60", "3c")


def unescaped(line: str) -> str:
    """Return the line with the escapes of `<` and `>` undone.

    Escapes are entities, and backslashes before them.
    """
    if "&" not in line and "\\" not in line:
        return line
    return _ENTITY.sub(
        lambda m: "<" if (m[1] or m[2]).lower().lstrip("#x0") in _LESS else ">", line
    )
