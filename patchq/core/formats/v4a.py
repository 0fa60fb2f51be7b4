"""V4A patches, the form of `apply_patch`.

    *** Begin Patch
    *** Update File: path/to/file.py
    @@ class Login
     context, led by a space
    -old line
    +new line
    *** End Patch

The two outer markers bound the patch; where it ends is decided before anything in it is read.  An
indented marker may as well be a context line: it counts only where no chunk line is before it,
or where no unindented marker follows that could be meant instead.

Models forget the space before context lines.  Every chunk is read with it; if some context line of
the patch has none, every chunk also gets the reading in which all of them stand as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from patchq.core.formats.format import Document, Format, Opening, Piece, Sign, UnreadableEdit
from patchq.core.formats.marks.fences import halves, is_blank, joined, line_above, next_line
from patchq.core.formats.marks.paths import undress
from patchq.core.model.ops import Create, DeleteFile, Op, PatchHunk, Rename
from patchq.core.model.values import Edit

NAME = "v4a"
INSTRUCTIONS = """\
Answer with one patch:

*** Begin Patch
*** Update File: path/to/file.py
@@ def function_that_holds_the_change
 an unchanged line, led by one space
-a line to remove
+a line to add
*** End Patch

Quote three unchanged lines before and after every change, exactly, each led by one space. `@@` and
a line above the change tell equal places apart; `*** End of File` ends a chunk that changes the
file's last lines. `*** Add File:` with the path, and every line of the file led by `+` under it,
creates a file; `*** Delete File:` deletes one; `*** Move to:` with the new path, right under
`*** Update File:`, renames one. Never leave lines out with `...`.
"""

_MARKER = re.compile(
    r"([ \t]*)\*{3}[ \t]*(?:(Begin Patch|End Patch|End of File)\s*"
    r"|((?:Add|Delete|Update) File|Move to)[ \t]*:(.*))",
    re.IGNORECASE,
)
_SUSPECT = re.compile(
    r"(?:[\s\u200b-\u200d\ufeff]|[*+>-]\s|\d+[.)]\s)*(?:"
    r"\*{2,5}\s*(?:Begin|End)\s*(?:of\s+)?(?:the\s+)?Patch\s*\**\s*$"
    r"|\*{3}\s*(?:(?:Add|Delete|Update|Move|Rename)\s+File|Move\s+to)\s*:)",
    re.IGNORECASE,
)
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"\\]?)(\w+)")
_CLOSERS = re.compile(r"[\"')\]};\s]*")
_SECTIONS = ("add file", "delete file", "update file")
_HEAD = 60  # a marker is within so many characters from the start of its line
_SCOPE = re.compile(r"@@(?=[ \t\r]|\Z)(.*)", re.DOTALL)
_NUMBERS = re.compile(r"-(\d{1,9})(?:,\d+)? +\+\d+(?:,\d+)?(?: *@@.*)?\Z", re.DOTALL)
_UNKNOWN = re.compile(r"\*{3}[ \t]*\w+(?: \w+)? ?(?:File|Patch|Path|to)\b", re.IGNORECASE)


class _PatchMarker(Struct, frozen=True):
    word: str
    path: str
    indented: bool


# Index of a line, the line, and the marker that it is.
PatchLine = tuple[int, str, _PatchMarker | None]


@dataclass(slots=True)
class _Section:
    """One file's part of a patch.

    It has the word of its marker, and the lines up to the next marker.
    """

    word: str
    index: int
    path: str
    body: list[PatchLine] = field(default_factory=list)


def read(doc: Document, i: int) -> Piece | None:
    """Return the patch that begins on line `i` (an index); see `formats.format`."""
    line = doc.lines[i]
    if not may_begin(line):
        return None
    if not opens(line):
        raise UnreadableEdit(
            i,
            f"expected `*** Begin Patch` first, found {line.strip()[:_HEAD]!r}",
            "send the whole patch, from `*** Begin Patch` to `*** End Patch`, each marker alone on "
            "its line and at its start",
        )
    markers = _markers(doc.lines, i)
    stop = next(reversed(markers))
    sections = list(_sections(doc, i, markers))
    if not sections:
        raise UnreadableEdit(
            i,
            "the patch names no file",
            "put `*** Update File: path` and the changes between the patch's two markers",
        )
    top, end = _heredoc(doc, i, stop)
    return Piece(tuple(_edits(doc, sections)), end, top)


def may_begin(line: str) -> bool:
    """Return whether the line is a patch's marker, or like one."""
    return "**" in line[:_HEAD] and bool(_marker(line) or _SUSPECT.match(line))


def opens(line: str) -> bool:
    """Return whether the line opens a patch."""
    marker = _marker(line) if "***" in line[:_HEAD] else None
    return marker is not None and marker.word == "begin patch"


# ---------------------------------------------------------------- where it ends


def _marker(line: str) -> _PatchMarker | None:
    match = _MARKER.fullmatch(line) if "***" in line else None
    return match and _PatchMarker(
        (match[2] or match[3]).lower(), (match[4] or "").strip(), bool(match[1])
    )


def _markers(lines: Sequence[str], start: int) -> dict[int, _PatchMarker]:
    """Return the patch's markers by line index, up to its end marker.

    An indented end marker ends the patch only where no other does, and then it is the last one.
    """
    markers: dict[int, _PatchMarker] = {}
    for i in range(start + 1, len(lines)):
        if not (marker := _marker(lines[i])):
            continue
        if marker.word == "begin patch" and not marker.indented:
            break
        markers[i] = marker
        if marker.word == "end patch" and not marker.indented:
            return markers
    ends = [i for i, marker in markers.items() if marker.word == "end patch"]
    if not ends:
        raise UnreadableEdit.cut(
            start, "the patch that opens here is not closed; expected `*** End Patch`"
        )
    return {i: marker for i, marker in markers.items() if i <= ends[-1]}


def _heredoc(doc: Document, start: int, stop: int) -> tuple[int | None, int]:
    """Return the index of the heredoc line above, and the index behind the patch.

    The heredoc line is `apply_patch <<'EOF'`, None if there is none.  The heredoc's end belongs to
    the patch.
    """
    above, end = line_above(doc.lines, start, doc.low), stop + 1
    line = doc.lines[above] if above >= doc.low else ""
    match = _HEREDOC.match(line, max(line.rfind("<<"), 0)) if "patch" in line else None
    if match is None:
        return None, end
    tag, i = match[2], next_line(doc.lines, stop)
    last = doc.lines[i].strip() if i < len(doc.lines) else ""
    if last.startswith(tag) and _CLOSERS.fullmatch(last[len(tag) :]):
        rest = doc.lines[i + 1].strip() if i + 1 < len(doc.lines) else ""
        end = i + 1 + bool(rest and _CLOSERS.fullmatch(rest))
    return above, end


def _sections(doc: Document, start: int, markers: dict[int, _PatchMarker]) -> Iterator[_Section]:
    """Yield the patch's files in their order.

    An indented marker among chunk lines counts only where no unindented one follows.
    """
    stop = next(reversed(markers))
    firm = max((i for i, marker in markers.items() if not marker.indented), default=start)
    section: _Section | None = None
    begun = False
    for i in range(start + 1, stop):
        line, marker = doc.lines[i], markers.get(i)
        if marker and marker.indented and begun and i < firm:
            marker = None
        if marker and marker.word in _SECTIONS:
            if section:
                yield section
            section, begun = _Section(marker.word, i, _path(doc, marker, i)), False
        elif section:
            section.body.append((i, line, marker))
            begun = begun or (section.word == "update file" and not (marker or is_blank(line)))
        elif not is_blank(line):
            raise UnreadableEdit(
                i,
                "expected `*** Add File:`, `*** Delete File:` or `*** Update File:`, found "
                f"{line.strip()[:_HEAD]!r}",
                "name a file by one of these markers before its lines",
            )
    if section:
        yield section


def _path(doc: Document, marker: _PatchMarker, index: int) -> str:
    path = marker.path
    dressed = not doc.known(path) and path[:1] in "`*_\"'"
    path = doc.known.meant(undress(path)[0] if dressed else path)
    if not path:
        raise UnreadableEdit(
            index,
            f"expected a path behind `*** {marker.word.capitalize()}:`",
            "put the file's path, relative to the repository's root, on the marker's line",
        )
    return path


# ---------------------------------------------------------------- what it says


def _edits(doc: Document, sections: Sequence[_Section]) -> Iterator[Edit]:
    updates = {s.index: _chunks_of(s.body) for s in sections if s.word == "update file"}
    read = [chunk for chunks in updates.values() for chunk in chunks]
    lost = any(sign == "?" for chunk in read for sign, _ in chunk.lines)
    for section in sections:
        if section.index in updates:
            yield from _update(doc, section, updates[section.index], lost)
            continue
        op = _add(section) if section.word == "add file" else _delete(section)
        last = max((i for i, line, _ in section.body if not is_blank(line)), default=section.index)
        yield _edit(section, section.index, last, op)


def _edit(section: _Section, first: int, last: int, op: Op, number: int = 0) -> Edit:
    return Edit("", NAME, (first + 1, last + 1), section.path, op, section=number)


def _add(section: _Section) -> Create:
    text: list[str] = []
    blank: list[str] = []
    for i, line, marker in section.body:
        if is_blank(line):
            blank.append(line)
        elif line[0] == "+":
            text += [*blank, line[1:]]
            blank = []
        elif (not marker or marker.word != "end of file") and (text or not _SCOPE.match(line)):
            raise UnreadableEdit(
                i,
                f"expected a line of the new file, led by `+`, found {line.strip()[:_HEAD]!r}",
                "lead every line of an added file by `+`, blank ones too",
            )
    return Create(joined(text))


def _delete(section: _Section) -> DeleteFile:
    quoted = [(i, line) for i, line, _ in section.body if not is_blank(line)]
    for i, line in quoted:
        if line[0] != "-":
            raise UnreadableEdit(
                i,
                f"expected nothing under `*** Delete File:`, found {line.strip()[:_HEAD]!r}",
                "to remove lines of a file, use `*** Update File:` with lines led by `-`",
            )
    return DeleteFile(joined(line[1:] for _, line in quoted) if quoted else None)


def _update(
    doc: Document, section: _Section, chunks: Sequence[Chunk], lost: bool
) -> Iterator[Edit]:
    moves = [(i, marker) for i, _, marker in section.body if marker and marker.word == "move to"]
    changing = any(chunk.changes for chunk in chunks)
    if not changing and not moves:
        raise UnreadableEdit(
            section.index,
            f"the update of {section.path} changes nothing",
            "lead the lines to remove by `-` and the lines to add by `+`, at the line's start",
        )
    for i, marker in moves:
        if (to := _path(doc, marker, i)) != section.path:
            yield _edit(section, section.index, i, Rename(to))
    for chunk in chunks if changing else ():
        if any(sign for sign, _ in chunk.lines):
            op = chunk.hunk(bare=lost)
            yield _edit(section, chunk.first, chunk.last, op, section.index + 1)


# ---------------------------------------------------------------- the chunks of a file


@dataclass(slots=True)
class Chunk:
    """One chunk of a patch.

    `first` and `last` are indices of the response's lines; `lines` are pairs of a sign and the line
    with it.  The sign is "" for a blank line, and `?` for one that lacks its own.
    """

    first: int
    last: int
    scopes: list[str] = field(default_factory=list)
    stated: int | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def changes(self) -> bool:
        return any(sign in ("+", "-") for sign, _ in self.lines)

    def hunk(self, *, bare: bool) -> PatchHunk:
        """Return the change that the chunk makes.

        With `bare`, it also holds the halves with context lines as they are.
        """
        # Blank lines behind lines that are only added separate the chunk from the next.
        signed = [k for k, (sign, _) in enumerate(self.lines, 1) if sign]
        adds = all(sign in ("", "+") for sign, _ in self.lines)
        lines = self.lines[: max(signed, default=0)] if adds else self.lines
        old, new = halves((s, x[1:] if s in ("+", "-", " ") else x) for s, x in lines)
        stand = halves((s, x[1:] if s in ("+", "-") else x) for s, x in lines)
        return PatchHunk(
            old,
            new,
            line=self.stated,
            scopes=tuple(self.scopes),
            at_end=self.at_end,
            bare=stand if bare and stand != (old, new) else None,
        )


def _chunks_of(body: Sequence[PatchLine]) -> list[Chunk]:
    chunks: list[Chunk] = []
    chunk: Chunk | None = None
    for i, line, marker in body:
        sign, word = line[:1], marker.word if marker else ""
        scope = _SCOPE.match(line) if sign == "@" else None
        if word == "end of file" and chunk and chunk.lines:
            chunk.at_end, chunk.last, chunk = True, i, None
        elif word == "move to" and not chunks:
            pass
        elif word or (sign == "*" and _UNKNOWN.match(line)):
            raise UnreadableEdit(
                i,
                f"expected a line of a chunk, found the marker {line.strip()[:60]!r}",
                "put `*** Move to:` right under `*** Update File:` and `*** End of File` under a "
                "chunk's lines; lead lines of the file by a space, `-` or `+`",
            )
        elif chunk or not is_blank(line):
            if chunk is None or (scope and chunk.lines):
                chunk = Chunk(i, i)
                chunks.append(chunk)
            if scope:
                _take_scope(chunk, scope[1].strip())
            else:
                chunk.lines.append((_sign(line), line))
            if not is_blank(line):
                chunk.last = i
    return chunks


def _take_scope(chunk: Chunk, text: str) -> None:
    """Add the scope or the line number behind `@@` to the chunk."""
    if numbers := _NUMBERS.match(text):
        chunk.stated = int(numbers[1]) or None
        return
    text = text.removesuffix("@@").rstrip()
    if text.strip(".…"):
        chunk.scopes.append(text)


def _sign(line: str) -> str:
    sign = line[:1]
    return sign if sign in ("+", "-", " ") else "?" if line.strip() else ""


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(Opening(read, (r"[>*+\d\u200b-\u200d\ufeff-]",), may_begin),),
    signs=(Sign("a V4A patch", r"\s*\*{3} (?:Begin|End) Patch"),),
)
