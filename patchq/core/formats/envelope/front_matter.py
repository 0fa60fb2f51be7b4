"""Front matter: where the YAML block before the edits stands, and where one may have been lost.

Lines alone decide, before any YAML is read: a block between two lines `---` that begins the
response, blank lines and one fence round it aside, and in which a line begins with a key of ours.
From then on nothing is let through that is not understood: taken for prose, a lost `target` or
`base` would land the edits elsewhere without a word.  So a block that is not closed, or that stands
further down, refuses the response as well.  Without a key of ours it is Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from patchq.core.formats.marks.fences import Fence, fence
from patchq.core.formats.marks.lines import BEGIN_PATCH, GIT
from patchq.core.formats.marks.paths import path_of_info
from patchq.core.model.values import Problem

KEYS = (
    "id", "target", "base", "message", "author", "agent", "model", "file", "retries",
    "depends_on", "whole_files", "bytes", "sha256",
)  # fmt: skip
MAX_BYTES = 65_536
# By so many characters a block may be longer than is read, and still be told to be so.
_ROOM = 4_096
_INVISIBLE = "\u200b\u2060\ufeff"
_MARKER = re.compile(r"([ \t]*)---(?:[ \t]+#.*)?[ \t]*")
_KEY = rf"(?:[-{{][ \t]*)?([\"']?)({'|'.join(KEYS)})\1[ \t]*:"
_NAMED = re.compile(_KEY)  # a line that begins with a key of ours, in a list or braces, too
_NAMED_BELOW = re.compile(rf"\n{_KEY}")
_may_open = re.compile(rf"[\s{_INVISIBLE}]*[-`~<]").match
# How a line of YAML begins that is a comment, an item, a continuation, or a key with its colon.
_SHAPED = re.compile(r"#|-(?:\s|\Z)|[ \t]|[\"']?[^\s:#-][^:]*:(?:\s|\Z)")
# A line on which an edit of any form may begin, fences aside.
_EDIT = re.compile(
    rf"\s*(?:[<>]{{5,9}}(?:\s|\Z)|-{{5,9}} SEARCH\b|{re.escape(BEGIN_PATCH)}|{GIT}|Index: "
    r"|\*\*\* (?:Add|Update|Delete) File:|(?:---|\+\+\+) \S|\W*FIND\b\W*:|FILE: "
    r"|[{\[]\s*(?:\Z|[\"{\[]))"
)
HINT_PROSE = (
    "If this block is text of the response itself, put an empty front matter (two lines `---`) "
    "before it."
)
_HINT_FIRST = (
    "Send the front matter as the first thing of the response, from a line `---` to a line `---`, "
    "with nothing but `key: value` lines between."
)


class Split(Struct, frozen=True):
    """A response taken apart: the lines between the markers, which begin on line `block_line` and
    at the character `block_at`; and the text behind them, which begins on line `body_line`.

    `promised` is the text that `bytes` and `sha256` speak of.  It is the body, but for a fence
    round both.
    """

    block: str
    block_line: int
    block_at: int
    body: str
    body_line: int
    promised: str


class _Line(Struct, frozen=True):
    """A line without its end, its number, and where it begins and the next one does."""

    text: str
    number: int
    start: int
    end: int

    @property
    def blank(self) -> bool:
        return not self.text.strip().strip(_INVISIBLE)


def split(text: str) -> Split | Problem | None:
    """Return the front matter and the rest; None if there is none.

    It is a problem where it can be no other thing and is not all there.
    """
    lines = _lines(text)
    opening = _filled(lines) if _may_open(text) else None
    mark = fence(opening.text) if opening else None
    first = _filled(lines) if mark else opening
    marker = _MARKER.fullmatch(first.text) if first else None
    if opening is None or first is None or marker is None:
        return None
    if mark and (mark.closing or path_of_info(mark.info, _nowhere)):
        return None
    named, closing, edit = _block(lines, marker[1], mark)
    if named is None or (mark and closing is None):
        return None
    if marker[1]:
        return _misplaced(first.number, "is indented")
    if closing is None:
        end = f"the edit on line {edit.number} begins" if edit else "it ends"
        return _misplaced(first.number, f"has no line `---` that closes it before {end}")
    block, body = text[first.end : closing.start], text[closing.end :]
    found = Split(block, first.number + 1, first.end, body, closing.number + 1, body)
    return _unwrapped(text, found, opening, mark) if mark else found


def _block(
    lines: Iterator[_Line], indent: str, wrapper: Fence | None
) -> tuple[str | None, _Line | None, _Line | None]:
    """Return the block's first key of ours, "" if it is empty, its end, and the first edit in it.

    The key is None where the block is Markdown.
    """
    filled = list[str]()
    edit: _Line | None = None
    closing: _Line | None = None
    size = 0
    for line in lines:
        size += line.end - line.start
        mark = fence(line.text)
        if size > MAX_BYTES + _ROOM or (mark and wrapper and wrapper.closed_by(mark)):
            break
        marker = _MARKER.fullmatch(line.text)
        if marker and marker[1] == indent:
            closing = line
            break
        named = _NAMED.match(line.text)
        if edit is None and (mark or (_EDIT.match(line.text) and not named)):
            edit = line
        if edit is None and not line.blank:
            filled.append(line.text.removeprefix(indent))
    if edit and filled and filled[-1].startswith("file"):
        filled.pop()  # the path line of an edit that stands between two rules
    keys = [match[2] if (match := _NAMED.match(line)) else None for line in filled]
    empty = closing is not None and not (filled or edit or wrapper)
    first = "" if empty else next(filter(None, keys if closing else keys[:1]), None)
    return first, None if edit else closing, edit


def _lines(text: str) -> Iterator[_Line]:
    start, number = 0, 1
    for match in re.finditer(r"[^\r\n]*(\r\n?|\n|\Z)", text):
        if match.start() == len(text):
            return
        end = match.end()
        yield _Line(text[start : match.start(1)], number, start, end)
        start, number = end, number + 1


def _filled(lines: Iterator[_Line]) -> _Line | None:
    """Return the next line that is not blank."""
    return next((line for line in lines if not line.blank), None)


def _unwrapped(text: str, found: Split, opening: _Line, mark: Fence) -> Split | None:
    """Return front matter in a fence without it, if it stands there alone.

    A fence round the edits, too, is theirs; one that holds other text is a document that is shown.
    """
    below = _filled(_lines(found.body))
    other = fence(below.text) if below else None
    if below and other and mark.closed_by(other):
        body = found.body[below.end :]
        line = found.body_line + below.number
        return Split(found.block, found.block_line, found.block_at, body, line, body)
    if below and not (other or _EDIT.match(below.text) or " " not in below.text.strip()):
        return None
    body = text[opening.start : opening.end] + found.body
    line = found.body_line - 1
    return Split(found.block, found.block_line, found.block_at, body, line, found.promised)


def _nowhere(path: str) -> bool:
    return False


def _misplaced(line: int, how: str) -> Problem:
    message = f"The front matter on line {line} {how}, so it may be lost."
    return Problem("frontmatter.value", message, f"{_HINT_FIRST} {HINT_PROSE}", line=line)


def inside(text: str) -> Problem | None:
    """Return the problem of front matter that begins a text which stands inside of JSON."""
    found = split(text)
    if isinstance(found, Split) and found.block.strip():
        return _misplaced(found.block_line - 1, "stands inside of an answer's JSON")
    return found if isinstance(found, Problem) else None


def may_be_further_down(lines: Sequence[str]) -> bool:
    """Return whether front matter may stand among lines, by their text alone."""
    text = "\n".join(["", *lines])
    return "---" in text and _NAMED_BELOW.search(text) is not None


def further_down(lines: Iterable[tuple[int, str]]) -> Problem | None:
    """Return the problem of front matter in the text (numbers, lines) before the edits."""
    numbered = [(number, line.rstrip("\r")) for number, line in lines]
    marks = [i for i, (_, line) in enumerate(numbered) if _MARKER.fullmatch(line)]
    for i, j in pairwise(marks):
        inner = [line for _, line in numbered[i + 1 : j] if line.strip()]
        named = next((match[2] for line in inner if (match := _NAMED.match(line))), None)
        unbroken = numbered[j][0] - numbered[i][0] == j - i
        if named and unbroken and all(map(_SHAPED.match, inner)):
            how = f"(`{named}`) is not the first thing of the response"
            return _misplaced(numbered[i][0], how)
    return None
