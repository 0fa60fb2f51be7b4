"""V4A patches, the form of `apply_patch`.

    *** Begin Patch
    *** Update File: path/to/file.py
    @@ class Login
     context, led by a space
    -old line
    +new line
    *** End Patch

The two outer markers bound the patch; where it ends is decided before anything in it is read.  An
indented marker may as well be a context line: it counts only where no chunk line stands before it,
or where no unindented marker follows that could be meant instead.

Models forget the space before context lines.  Every chunk is read with it; if some context line of
the patch has none, every chunk also gets the reading in which all of them stand as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from patchq.formats.document import Document, Piece
from patchq.formats.marks.headings import line_above
from patchq.formats.marks.paths import as_meant, undress
from patchq.formats.marks.signed_lines import is_blank, joined
from patchq.formats.unreadable import Unreadable
from patchq.formats.v4a.chunks import SCOPE, Chunk, Line, chunks_of
from patchq.model.ops import Create, DeleteFile, Op, Rename
from patchq.model.values import Edit

NAME = "v4a"
INSTRUCTIONS = """\
Answer with one patch:

*** Begin Patch
*** Update File: path/to/file.py
@@ def function_that_holds_the_change
 an unchanged line, led by one space
-a line to remove
+a line to add
*** Add File: path/to/new.py
+every line of the new file, led by `+`
*** Delete File: path/to/old.py
*** End Patch

Quote three unchanged lines before and after every change, exactly, each led by one space. `@@` and
a line above the change tell equal places apart. `*** Move to: new/path.py` right under
`*** Update File:` renames the file; `*** End of File` ends a chunk that changes the file's last
lines. Never leave lines out with `...`.
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
_HEAD = 60
"""A marker stands within so many characters from the start of its line."""


@dataclass(frozen=True, slots=True)
class _Marker:
    word: str
    path: str
    indented: bool


@dataclass(slots=True)
class _Section:
    """One file's part of a patch: its marker, and the lines up to the next one's."""

    marker: _Marker
    index: int
    path: str
    body: list[Line] = field(default_factory=list)


def read(doc: Document, i: int) -> Piece | None:
    """The patch that begins on line `i` (an index); see `formats.document`."""
    line = doc.lines[i]
    if not may_begin(line):
        return None
    marker = _marker(line)
    if marker is None or marker.word != "begin patch":
        raise Unreadable(
            i,
            f"expected `*** Begin Patch` first, found {line.strip()[:_HEAD]!r}",
            "send the whole patch, from `*** Begin Patch` to `*** End Patch`, each marker alone on "
            "its line and at its start",
        )
    stop, firm = _extent(doc.lines, i)
    sections = list(_sections(doc, i, stop, firm))
    if not sections:
        raise Unreadable(
            i,
            "the patch names no file",
            "put `*** Update File: path` and the changes between the patch's two markers",
        )
    top, end = _heredoc(doc, i, stop)
    return Piece(tuple(_edits(doc, sections)), end, top)


def may_begin(line: str) -> bool:
    """Whether the line is a patch's marker, or like one."""
    if "**" not in line[:_HEAD]:
        return False
    return _marker(line) is not None or _SUSPECT.match(line) is not None


def opens(line: str) -> bool:
    """Whether the line opens a patch."""
    mark = _marker(line) if "***" in line[:_HEAD] else None
    return mark is not None and mark.word == "begin patch"


# ---------------------------------------------------------------- where it ends


def _marker(line: str) -> _Marker | None:
    match = _MARKER.fullmatch(line) if "***" in line else None
    if match is None:
        return None
    return _Marker((match[2] or match[3]).lower(), (match[4] or "").strip(), bool(match[1]))


def _extent(lines: Sequence[str], start: int) -> tuple[int, int]:
    """The index of the patch's end marker, and that of its last unindented marker."""
    firm, indented = start, None
    for i in range(start + 1, len(lines)):
        mark = _marker(lines[i])
        if mark is None:
            continue
        if mark.indented:
            indented = i if mark.word == "end patch" else indented
        elif mark.word == "begin patch":
            break
        elif mark.word == "end patch":
            return i, i
        else:
            firm = i
    if indented is not None:
        return indented, firm
    raise Unreadable(
        start,
        "the patch that opens here is not closed; expected `*** End Patch`",
        "send the whole response again; if it was cut, send fewer changes at once",
        "response.truncated",
    )


def _heredoc(doc: Document, start: int, stop: int) -> tuple[int | None, int]:
    """The index of the `apply_patch <<'EOF'` line above the patch, if there is one, and the index
    behind the patch, or behind the heredoc's end."""
    end = stop + 1
    above = line_above(doc.lines, start, doc.low)
    if above < doc.low or "patch" not in doc.lines[above]:
        return None, end
    line = doc.lines[above]
    match = _HEREDOC.match(line, max(line.rfind("<<"), 0))
    if match is None:
        return None, end
    tag, i = match[2], end
    while i < len(doc.lines) and not doc.lines[i].strip():
        i += 1
    if i < len(doc.lines) and (last := doc.lines[i].strip()).startswith(tag):
        if not _CLOSERS.fullmatch(last[len(tag) :]):
            return above, end
        end = i + 1
        rest = doc.lines[end].strip() if end < len(doc.lines) else ""
        if rest and _CLOSERS.fullmatch(rest):
            end += 1
    return above, end


def _sections(doc: Document, start: int, stop: int, firm: int) -> Iterator[_Section]:
    """The patch's files in their order; markers behind `firm` count though they are indented."""
    section: _Section | None = None
    begun = False
    for i in range(start + 1, stop):
        line = doc.lines[i]
        mark = _marker(line)
        if mark and mark.indented and begun and i < firm:
            mark = None
        if mark and mark.word in _SECTIONS:
            if section:
                yield section
            section, begun = _Section(mark, i, _path(doc, mark, i)), False
        elif section:
            section.body.append((i, line, mark.word if mark else ""))
            begun = begun or (section.marker.word == "update file" and not (mark or is_blank(line)))
        elif not is_blank(line):
            raise Unreadable(
                i,
                "expected `*** Add File:`, `*** Delete File:` or `*** Update File:`, found "
                f"{line.strip()[:_HEAD]!r}",
                "name a file by one of these markers before its lines",
            )
    if section:
        yield section


def _path(doc: Document, marker: _Marker, index: int) -> str:
    path = marker.path
    if not doc.known(path):
        path = as_meant(undress(path)[0] if path[:1] in "`*_\"'" else path, doc.known)
    if not path:
        raise Unreadable(
            index,
            f"expected a path behind `*** {marker.word.capitalize()}:`",
            "put the file's path, relative to the repository's root, on the marker's line",
        )
    return path


# ---------------------------------------------------------------- what it says


def _edits(doc: Document, sections: Sequence[_Section]) -> Iterator[Edit]:
    updates = {s.index: chunks_of(s.body) for s in sections if s.marker.word == "update file"}
    lost = any(chunk.lacks_space for chunks in updates.values() for chunk in chunks)
    for section in sections:
        if section.index in updates:
            yield from _update(doc, section, updates[section.index], lost)
            continue
        op = _add(section) if section.marker.word == "add file" else _delete(section)
        last = max((i for i, line, _ in section.body if not is_blank(line)), default=section.index)
        yield _edit(section, section.index, last, op)


def _edit(section: _Section, first: int, last: int, op: Op) -> Edit:
    return Edit("", NAME, (first + 1, last + 1), section.path, op)


def _add(section: _Section) -> Create:
    text: list[str] = []
    blank: list[str] = []
    for i, line, word in section.body:
        if is_blank(line):
            blank.append(line)
        elif line[0] == "+":
            text += [*blank, line[1:]]
            blank = []
        elif word != "end of file" and (text or not SCOPE.match(line)):
            raise Unreadable(
                i,
                f"expected a line of the new file, led by `+`, found {line.strip()[:_HEAD]!r}",
                "lead every line of an added file by `+`, blank ones too",
            )
    return Create(joined(text))


def _delete(section: _Section) -> DeleteFile:
    quoted = [(i, line) for i, line, _ in section.body if not is_blank(line)]
    for i, line in quoted:
        if line[0] != "-":
            raise Unreadable(
                i,
                f"expected nothing under `*** Delete File:`, found {line.strip()[:_HEAD]!r}",
                "to remove lines of a file, use `*** Update File:` with lines led by `-`",
            )
    return DeleteFile(joined(line[1:] for _, line in quoted) if quoted else None)


def _update(
    doc: Document, section: _Section, chunks: Sequence[Chunk], lost: bool
) -> Iterator[Edit]:
    moves = [(i, line) for i, line, word in section.body if word == "move to"]
    changing = [chunk for chunk in chunks if chunk.changes]
    if not changing and not moves:
        raise Unreadable(
            section.index,
            f"the update of {section.path} changes nothing",
            "lead the lines to remove by `-` and the lines to add by `+`, at the line's start",
        )
    for i, line in moves:
        mark = _marker(line)
        if mark and (to := _path(doc, mark, i)) != section.path:
            yield _edit(section, section.index, i, Rename(to))
    for chunk in changing:
        yield _edit(section, chunk.first, chunk.last, chunk.hunk(bare=lost))
