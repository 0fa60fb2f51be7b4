"""Front matter: where the YAML block before the edits stands, and where one may have been lost.

Whether there is one is decided by lines alone, before any YAML is read: a block between two lines
`---` that begins the response, blank lines and one fence round it aside, and in which a line begins
with a key of ours.  From then on nothing is let through that is not understood: taken for prose, a
lost `target` or `base` would land the edits elsewhere without a word.  So a block that is not
closed, or that stands further down, refuses the response as well.  Without a key of ours it is
Markdown, unless all of it is keys and values and one of them is a slip of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.formats.envelope.keys import KEYS, near
from patchq.core.formats.marks.lines import BEGIN_PATCH, GIT, Fence, OpenFences, fence
from patchq.core.formats.marks.paths import path_line, path_of_info
from patchq.core.model.values import Problem

MAX_BYTES = 65_536
_ROOM = 4_096
"""By so many characters a block may be longer than is read, and still be told to be so."""

_INVISIBLE = "\u200b\u2060\ufeff"
_MARKER = re.compile(r"([ \t]*)---(?:[ \t]+#.*)?[ \t]*")
_LIKE_MARKER = re.compile(r"\\?-{2,}[ \t]*\w*[ \t]*|\+{3,}[ \t]*|[\u2013\u2014]+[ \t]*")
"""A line that is meant as a marker, and is none to YAML."""
_STEERING = frozenset({"target", "base", "retries", "depends_on", "whole_files"})
_LOOKALIKES = str.maketrans({"\u00a0": " ", "\uff1a": ":"})
_NAMED = re.compile(rf"([\"']?)({'|'.join(KEYS)})\1[ \t]*:")
"""A line that begins with a key of ours."""
_may_open = re.compile(rf"[\s{_INVISIBLE}]*(?:[-`~<+\\\u2013\u2014]|{_NAMED.pattern})").match
"""Whether front matter, or what may be some, may begin a text."""
_NAMED_BELOW = re.compile(rf"\n{_NAMED.pattern}")
_ENTRY = re.compile(r"(?:-[ \t]+)?[\"']?([^\s:#\"'{-][^:\"']*?)[\"']?[ \t]*:(?:\s|\Z)")
_SHAPED = re.compile(r"#|-(?:\s|\Z)|[ \t]|[\"']?[^\s:#-][^:]*:(?:\s|\Z)")
"""How a line of YAML begins that is a comment, an item, a continuation, or a key with its colon."""
_EDIT = re.compile(
    rf"\s*(?:[<>]{{5,9}}(?:\s|\Z)|-{{5,9}} SEARCH\b|{re.escape(BEGIN_PATCH)}|{GIT}|Index: "
    r"|\*\*\* (?:Add|Update|Delete) File:|(?:---|\+\+\+) \S|\W*FIND\b\W*:|FILE: "
    r"|[{\[]\s*(?:\Z|[\"{\[]))"
)
"""A line on which an edit of any form may begin, fences aside."""
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
    """Take the front matter off; None if there is none, and a problem where it can be no other
    thing and is not all there."""
    lines = _lines(text)
    opening = _filled(lines) if _may_open(text) else None
    if opening is None:
        return None
    if (mark := fence(opening.text)) is None:
        return _opened(text, lines, opening)
    marker = _filled(lines)
    if marker is None or mark.closing or path_of_info(mark.info, _nowhere):
        return None
    found = _opened(text, lines, marker, mark)
    return _unwrapped(text, found, opening, mark) if isinstance(found, Split) else found


def _opened(
    text: str, lines: Iterator[_Line], opening: _Line, wrapper: Fence | None = None
) -> Split | Problem | None:
    """The front matter that `opening` may open, with all that follows it."""
    marker = _MARKER.fullmatch(opening.text)
    if marker is None:
        return None
    block = _block(lines, marker[1], wrapper)
    if not block.is_front(wrapped=wrapper is not None):
        return None
    if marker[1]:
        return _misplaced(opening.number, "is indented")
    if block.closing is None or block.edit:
        edit = block.edit
        where = f"the edit on line {edit.number} begins" if edit else "it ends"
        return _misplaced(opening.number, f"has no line `---` that closes it before {where}")
    closing, body = block.closing, text[block.closing.end :]
    inner = text[opening.end : closing.start]
    return Split(inner, opening.number + 1, opening.end, body, closing.number + 1, body)


def _lines(text: str) -> Iterator[_Line]:
    start, number = 0, 1
    for match in re.finditer(r"[^\r\n]*(\r\n?|\n|\Z)", text):
        if match.start() == len(text):
            return
        end = match.end()
        yield _Line(text[start : match.start(1)], number, start, end)
        start, number = end, number + 1


def _filled(lines: Iterator[_Line]) -> _Line | None:
    """The next line that is not blank."""
    return next((line for line in lines if not line.blank), None)


class _Block(Struct, frozen=True):
    """The lines behind an opening marker, up to the closing one or to the first edit, if one begins
    before that."""

    lines: tuple[str, ...]
    closing: _Line | None
    edit: _Line | None

    def is_front(self, *, wrapped: bool) -> bool:
        """Whether they are front matter, whole or not; `wrapped` in a fence, which may close what a
        marker does not."""
        lines = list(self.lines)
        if self.edit and lines and _NAMED.match(lines[-1]) and lines[-1].startswith("file"):
            lines.pop()  # the path line of an edit that stands between two rules
        named = [i for i, line in enumerate(lines) if _NAMED.match(line)]
        if self.closing is None and wrapped:
            keys = list(_keys(lines))
            return bool(keys) and _shaped(lines) and not {*keys} - {*KEYS}
        if self.closing is None:
            return bool(named) and named[0] == 0
        if named or self.edit:
            return bool(named)
        if not lines:
            return not wrapped
        if _is_object_of_ours("\n".join(lines)):
            return True
        return _shaped(lines) and any(key[0].islower() and near(key) for key in _keys(lines))


def _block(lines: Iterator[_Line], indent: str, wrapper: Fence | None) -> _Block:
    block: list[str] = []
    whole: list[str] = []
    closing = edit = None
    begin: int | None = None
    for line in lines:
        begin = line.start if begin is None else begin
        if line.end - begin > MAX_BYTES + _ROOM:
            break
        marker, mark = _MARKER.fullmatch(line.text), fence(line.text)
        if marker and marker[1] == indent:
            closing = line
            break
        if mark and wrapper and wrapper.closed_by(mark):
            break
        whole.append(line.text.removeprefix(indent))
        if edit is None and (mark or _EDIT.match(line.text)):
            edit = line
        if edit is None and not line.blank:
            block.append(line.text.removeprefix(indent).translate(_LOOKALIKES))
    if closing and edit and not block and _is_object_of_ours("\n".join(whole)):
        block, edit = [line for line in whole if line.strip()], None
    return _Block(tuple(block), closing, edit)


def _is_object_of_ours(text: str) -> bool:
    """Whether a text is one JSON object of our keys: YAML as well, and no edit."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value) and value.keys() <= {*KEYS}


def _shaped(lines: Iterable[str]) -> bool:
    """Whether all lines are keys with values, items, comments or continuations."""
    return all(_SHAPED.match(line) for line in lines if line.strip())


def _keys(lines: Iterable[str]) -> Iterator[str]:
    """What stands before the colons, also of items and inside of braces."""
    for line in lines:
        for part in re.split("[{,]", line) if line.startswith("{") else (line,):
            if match := _ENTRY.match(part.strip()):
                yield match[1]


def _unwrapped(text: str, found: Split, opening: _Line, mark: Fence) -> Split | Problem | None:
    """Front matter in a fence, without it if it stands there alone.

    A fence round the edits, too, is theirs; one that holds other text is a document that is shown.
    """
    fences = OpenFences()
    fences.read(0, mark)
    above, shown, begun = "", 0, False
    for line in _lines(found.body):
        inner = fence(line.text)
        if inner:
            fences.read(line.number, inner)
        if inner and not fences.are_open:
            if begun or shown:
                break
            body = found.body[line.end :]
            return replace(found, body=body, body_line=found.body_line + line.number, promised=body)
        begun = begun or _begins(line.text, inner, above, alone=shown < 2)
        shown += not (begun or line.blank)
        above = above if line.blank else line.text
    if begun and shown > 1:
        return _misplaced(found.block_line - 1, "stands in a fence with text that is no edit")
    if not begun:
        return None
    body = text[opening.start : opening.end] + found.body
    return replace(found, body=body, body_line=found.body_line - 1)


def _begins(line: str, mark: Fence | None, above: str, *, alone: bool) -> bool:
    """Whether an edit begins on a line, inside of a fence; JSON only where it is `alone`."""
    if mark:
        return bool(path_of_info(mark.info, _nowhere) or path_line(above, _nowhere))
    return bool(_EDIT.match(line)) and (alone or line.lstrip()[0] not in "{[")


def _nowhere(path: str) -> bool:
    return False


def _misplaced(line: int, how: str) -> Problem:
    message = f"The front matter on line {line} {how}, so it may be lost."
    return Problem("frontmatter.value", message, f"{_HINT_FIRST} {HINT_PROSE}", line=line)


def unmarked(text: str, first_line: int = 1) -> Problem | None:
    """The problem of front matter that begins a text without the two lines that make it so: keys of
    ours in a paragraph, or a fence, of their own, or above a line like a marker."""
    begin, _, behind = text.lstrip("\n").partition("\n")
    if begin.startswith("{") and behind.strip() and _is_object_of_ours(begin):
        return _misplaced(first_line, "does not stand between two lines `---`")
    lines = _lines(text)
    opening = _filled(lines) if _may_open(text) else None
    mark = fence(opening.text) if opening else None
    if opening is None or (mark and (mark.closing or path_of_info(mark.info, _nowhere))):
        return None
    alone = mark is None and not _LIKE_MARKER.fullmatch(opening.text)
    block = [opening.text] if alone else []
    last = ""
    for line in lines:
        if block and not _NAMED.match(block[0]):
            return None
        last = line.text
        if fence(last) or _LIKE_MARKER.fullmatch(last) or _EDIT.match(last):
            break
        if line.blank and block:
            break
        block += [] if line.blank else [last]
    if block and block[-1].startswith("file") and (fence(last) or _EDIT.match(last)) and not mark:
        block.pop()  # the path line of an edit
    named = [match[2] for line in block if (match := _NAMED.match(line))]
    if named and _NAMED.match(block[0]):
        only = len(named) == len(block) and (len(named) > 1 or named[0] in _STEERING)
        closed = mark is None and bool(_LIKE_MARKER.fullmatch(last)) and _shaped(block)
        if only or closed:
            line_number = opening.number + first_line - 1
            return _misplaced(line_number, "does not stand between two lines `---`")
    return None


def inside(text: str) -> Problem | None:
    """The problem of front matter that begins a text which stands inside of JSON."""
    found = split(text)
    if isinstance(found, Split) and found.block.strip():
        return _misplaced(found.block_line - 1, "stands inside of an answer's JSON")
    return found if isinstance(found, Problem) else None


def may_be_further_down(lines: Sequence[str]) -> bool:
    """Whether front matter may stand among lines, by their text alone."""
    text = "\n".join(["", *lines])
    return "---" in text and _NAMED_BELOW.search(text) is not None


def further_down(lines: Iterable[tuple[int, str]]) -> Problem | None:
    """The problem of front matter that stands in the text (numbers, lines) before the edits."""
    numbered = list(lines)
    marks = [
        i
        for i, (_, line) in enumerate(numbered)
        if "---" in line and _MARKER.fullmatch(line.rstrip("\r"))
    ]
    for i, j in pairwise(marks):
        inner = [line.rstrip("\r") for _, line in numbered[i + 1 : j]]
        if numbered[j][0] - numbered[i][0] == j - i and _shaped(inner):
            named = [match[2] for line in inner if (match := _NAMED.match(line))]
            if named:
                return _misplaced(
                    numbered[i][0], f"(`{named[0]}`) is not the first thing of the response"
                )
    return None
