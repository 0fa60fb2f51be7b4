"""A diff in a fence of its own language.

Once its first header is read, everything in the fence is diff: any other line refuses it.  Hunks
without a header are those of the file that the fence's info, the line above it or the front matter
names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchq.formats.document import Document, Piece
from patchq.formats.marks.blocks import opening
from patchq.formats.marks.fences import Fence, fence
from patchq.formats.marks.headings import line_above
from patchq.formats.marks.paths import as_meant, path_line, path_of_info, path_of_sentence
from patchq.formats.unified_diff import mails
from patchq.formats.unified_diff.files import FileReader
from patchq.formats.unified_diff.headers import HINT, HINT_CUT, Region, begins_file
from patchq.formats.unified_diff.hunks import HEADER, is_fence, is_signature
from patchq.formats.unreadable import Unreadable
from patchq.formats.v4a import reading as v4a
from patchq.model.ops import Rename

INDENTED = re.compile(
    r"[\s>]+(?:diff --git \S|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\+{3} (?:[ab]/|/dev/null))"
)
OTHER = re.compile(
    r"\*{3} \d+(?:,\d+)? \*{4}\s*|@@@+ -\d.*|(?:Binary f|F)iles \S.* differ\s*", re.DOTALL
)
"""Lines of diffs of another kind: context diffs, those of merges and of binary files."""

_LANGUAGE = re.compile(r"(?:diff|patch|udiff|git-diff)(?![\w+-])", re.IGNORECASE)
_ENDINGS = (".diff", ".patch", ".udiff", ".rej")
_OF_TEXT = re.compile(r"[^\s<>@*+\dBFd-]|\Z")
"""A line that is none of any diff, nor of another form."""
_NORMAL = re.compile(r"\d+(?:,\d+)?[acd]\d+(?:,\d+)?\s*")
_BETWEEN = re.compile(r"(?:diff -|Index: |={20,}|Only in )")


def fenced_diff(doc: Document, start: int) -> Piece | None:
    """The diff in the fence that opens on line `start` (an index); None if none does, or it holds
    none.  Raises `Unreadable`."""
    mark = fence(doc.lines[start])
    if mark is None or not is_of_diff(mark):
        return None
    if "." in mark.info and (path_of_info(mark.info, doc.known) or "").endswith(_ENDINGS):
        return None  # a file that holds a diff
    line = doc.lines[start]
    indent = line[: len(line) - len(line.lstrip(" "))]
    end, closed = _end(doc.lines, start, mark, len(indent))
    lines = [line.removeprefix(indent) for line in doc.lines[start + 1 : end]]
    if not _holds_diff(lines):
        return None
    path, top = heading(doc, start, mark)
    reader = FileReader(Region(doc, lines, start + 1, fenced=True))
    _read(reader, path)
    if not reader.edits:
        raise Unreadable(start, "the fence holds lines of a diff, and no header of a file", HINT)
    if not closed and not (end == len(doc.lines) and reader.exact):
        message = "the fence that opens here is not closed behind its diff"
        raise Unreadable(start, message, HINT_CUT, "response.truncated")
    named = {edit.path for edit in reader.edits}
    named |= {edit.op.to for edit in reader.edits if isinstance(edit.op, Rename)}
    own = top if path in named else None
    return Piece(tuple(reader.edits), end + closed, own, warnings=tuple(reader.warnings))


def is_of_diff(mark: Fence) -> bool:
    """Whether a fence line opens a fence of a diff's language."""
    return not mark.closing and _LANGUAGE.match(mark.info) is not None


def heading(doc: Document, i: int, mark: Fence | None) -> tuple[str | None, int | None]:
    """The path for hunks without a header on line `i`, and the index of the line above that names
    it and holds nothing else."""
    if mark and (path := path_of_info(mark.info, doc.known)):
        return as_meant(path, doc.known), None
    above = line_above(doc.lines, i, doc.low)
    if mark is None and above >= doc.low and is_fence(doc.lines[above]):
        above = line_above(doc.lines, above, doc.low)
    if above >= doc.low:
        if path := path_line(doc.lines[above], doc.known):
            return as_meant(path, doc.known), above
        if path := path_of_sentence(doc.lines[above], doc.known):
            return as_meant(path, doc.known), None
    return doc.default_path, None


def _end(lines: Sequence[str], start: int, mark: Fence, indent: int) -> tuple[int, bool]:
    """Where the fence's lines end, and whether a fence line closes it there.

    A fence line of a file's text stands behind a sign, so one with info opens another fence.
    """
    for i in range(start + 1, len(lines)):
        line = lines[i]
        if is_fence(line) or (not line[:indent].strip() and is_fence(line[indent:])):
            other = fence(line)
            if other and mark.closed_by(other):
                return i, True
            if other and other.info:
                return i, False
    return len(lines), False


def _holds_diff(lines: Sequence[str]) -> bool:
    """Whether there are lines of a diff, and no edit of another form before them."""
    others: set[str] = set()
    for i, line in enumerate(lines):
        if line in others or _OF_TEXT.match(line):
            continue
        if opening(line) or v4a.opens(line) or mails.begins(line):
            return False
        if begins_file(lines, i) or HEADER.match(line) or INDENTED.match(line):
            return True
        if _NORMAL.fullmatch(line) or OTHER.fullmatch(line):
            return True
        if line[:1] not in ("+", "-"):
            others.add(line)
        elif line.strip("+- \t\r"):
            return True
    return False


def _read(reader: FileReader, path: str | None) -> None:
    lines, i = reader.region.lines, 0
    while i < len(lines):
        line = lines[i]
        if begins_file(lines, i):
            i = reader.file(i)
        elif HEADER.match(line) and not reader.edits:
            i = reader.headless(i, path)
        elif not line.strip() or _BETWEEN.match(line):
            i += 1
        elif is_signature(lines, i):
            i += 2
        elif not reader.edits and line[0] not in "+-" and not _is_foreign(line):
            i += 1
        else:
            raise reader.region.unreadable(
                i,
                f"expected a line of a unified diff, found {line.strip()[:60]!r}",
                f"{HINT}, each led by a space, `+` or `-`",
            )


def _is_foreign(line: str) -> bool:
    return bool(OTHER.fullmatch(line) or INDENTED.match(line) or _NORMAL.fullmatch(line))
