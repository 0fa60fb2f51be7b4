"""The parts of a response: its labels, and the text in fences under them.

Labels are `FILE:`, `END FILE`, `CHANGE`, `FIND:` and `REPLACE WITH:`.
A bare fence line of at least the opening's length closes.  Inside, a fence line with info opens a
nested fence, which a bare line closes first; a shorter one cannot be mistaken for the outer fence
and is text.  A bare line that opens inside looks like the outer fence's end, so a text
that may hold fences is only read if no further line could have been that end.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit
from patchq.core.formats.marks.blocks import opening
from patchq.core.formats.marks.fences import (
    BEGIN_PATCH,
    GIT,
    Fence,
    joined,
    next_line,
)
from patchq.core.formats.marks.paths import KnownPaths, path_of_info, undress

_FILE = re.compile(
    r" {0,3}(?P<dress>(?:#{1,6}[ \t]+)?(?P<bold>\*\*|__)?)FILE"
    r"(?:[ \t]*:|(?P=bold)[ \t]*:)(?P<rest>.*)",
    re.DOTALL,
)
_FILE_END = re.compile(r" {0,3}(?:#{1,6}[ \t]+)?(?:\*\*)?END FILE(?:[ \t]*:.*|\*\*)?[ \t\r]*")
_CHANGE = re.compile(
    r" {0,3}(?:#{1,6}[ \t]*)?(?P<bold>\*\*|__)?(?P<word>CHANGE)(?:"
    r"[ \t]*#?\d+(?:[ \t]*(?:/|of)[ \t]*\d+)?(?:\*\*|__)?[ \t]*"
    r"(?::|[.)](?=\s|\Z)|[-\u2013\u2014](?=\s)|\Z)"
    r"|(?:\*\*|__)?[ \t]*:)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HALF = re.compile(
    r"(?:\d{1,3}[.)][ \t]*)?(?:(?P<find>FIND)|REPLACE(?:[\s_-]*WITH)?)[ \t]*(?P<colon>:?)",
    re.IGNORECASE,
)
_MAY_LABEL = re.compile(r"[\s\d.)#*_`>+-]*+[CcFfRr]")
_LONGEST_HALF = 40
_INDENTED = ("    ", "\t")

LONGER_FENCE = (
    "put a text that holds fences into a longer one, as ```` (four backticks) for three; both of "
    "its lines need the same length"
)
_MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx")
_MARKDOWN_LANGUAGES = ("markdown", "md", "mdx")


# ---------------------------------------------------------------- labels


def is_file_end(line: str) -> bool:
    """Return whether a line is `END FILE`."""
    return _FILE_END.fullmatch(line) is not None


class FileLine(Struct, frozen=True):
    """A `FILE:` line in capitals.

    `dressed` is true for a heading or bold text.
    """

    rest: str
    dressed: bool


class ChangeLine(Struct, frozen=True):
    """A `CHANGE` line.

    `shouted` is true if it is in capitals.
    """

    description: str
    shouted: bool


def file_line(line: str) -> FileLine | None:
    """Return the line as `FILE: path`, or None."""
    match = _FILE.match(line)
    return match and FileLine(_rest(match), dressed=bool(match["dress"]))


def path_behind(label: FileLine, known: KnownPaths) -> str | None:
    """Return the path behind `FILE:`, or None.

    None if there is none, or a note behind it.
    """
    rest = label.rest if known(label.rest) else undress(label.rest)[0]
    if rest.endswith(")") and not known(rest):  # a note is no part of the path
        return None
    return known.meant(rest) or None


def change_line(line: str) -> ChangeLine | None:
    """Return the line as `CHANGE 1: description`, or None."""
    match = _CHANGE.match(line.rstrip())
    return match and ChangeLine(_rest(match), shouted=match["word"].isupper())


def _rest(match: re.Match[str]) -> str:
    """Return the text behind a label, without the emphasis that ends there."""
    bold = match["bold"] or ""
    return match["rest"].strip().removeprefix(bold).removesuffix(bold).strip()


def half_at(doc: Document, i: int) -> str | None:
    """Return `FIND` or `REPLACE WITH` if line `i` is that label, or None.

    Over a fence any case will do, without a colon only capitals, bold or a heading.  Elsewhere it
    is one in capitals with its colon: `find:` is also a key in YAML.
    """
    line = doc.lines[i]
    match = _half(line)
    if match is None:
        return None
    core = match.string
    below = doc.fences.at(next_line(doc.lines, i))
    fenced = below is not None and not below.closing
    dressed = core.isupper() or core != line.strip()
    sure = (fenced and (match["colon"] or dressed)) or (match["colon"] and core.isupper())
    if not sure:
        return None
    return "FIND" if match["find"] else "REPLACE WITH"


@lru_cache(256)
def _dressed_half(text: str) -> re.Match[str] | None:
    core = text.lstrip("#").replace("*", "").replace("__", "").replace("`", "").strip()
    return _HALF.fullmatch(core)


def _half(line: str) -> re.Match[str] | None:
    """Return the label of a half if the line is one, decoration aside."""
    text = line.strip()
    short = 0 < len(text) <= _LONGEST_HALF and not line.startswith(_INDENTED)
    return _dressed_half(text) if short else None


def may_label(line: str) -> bool:
    """Return whether the line may be the label of a change or a half."""
    return bool(_MAY_LABEL.match(line) and (_half(line) or change_line(line)))


# ---------------------------------------------------------------- texts in fences


class Fenced(Struct, frozen=True):
    """Line indices of a fence's two lines, and the lines between."""

    start: int
    end: int
    mark: Fence
    lines: tuple[str, ...]
    nests: bool  # true if some of the lines between are fence lines themselves

    @property
    def text(self) -> str:
        return joined(self.lines)


def is_markdown(path: str, info: str) -> bool:
    """Return whether the text is Markdown, by its path or by its fence's info."""
    language = info.partition(":")[0].split(" ")[0].lower()
    return path.lower().endswith(_MARKDOWN_ENDINGS) or language in _MARKDOWN_LANGUAGES


def fenced_at(doc: Document, start: int, mark: Fence) -> Fenced:
    """Return the text of the fence that `mark` opens on line `start`.

    `start` is an index.  Raises `UnreadableEdit` if the fence is not closed.
    """
    end = doc.fences.end(start, mark)
    if end == len(doc.lines):
        message = "the fence that opens here is not closed before the response ends"
        raise UnreadableEdit.cut(start, message)
    first = next(((i, m) for i, m in doc.fences.behind(start) if not m.kind.isalpha()), None)
    nests = first is not None and first[0] < end
    return Fenced(start, end, mark, tuple(doc.lines[start + 1 : end]), nests)


def check_end(doc: Document, text: Fenced, path: str) -> None:
    """Raise `UnreadableEdit` if another line may be the fence's end as well.

    In Markdown, in a text that holds fences, and where text follows the first end at once, that is
    every bare one before the next path, label, edit, or fence with a path.
    """
    lines, fences, i = doc.lines, doc.fences, text.end + 1
    goes_on = i < len(lines) and lines[i].strip() and not fences.at(i)
    nests, shown = text.nests or is_markdown(path, text.mark.info), False
    if not (nests or goes_on):
        return
    while i < len(lines):
        mark = fences.at(i)
        if mark is None and _begins_edit(doc, i):
            # What is right under a fence line of a document may be shown in it.
            shown = shown or (nests and i == text.end + 1 and not is_file_end(lines[i]))
            if not shown:
                return
        elif mark is None:
            pass
        elif text.mark.closed_by(mark):
            outer = fences.at(next_line(lines, -1))  # a longer fence round the whole response
            wraps = outer is not None and outer.length == mark.length > text.mark.length
            if wraps and next_line(lines, i) == len(lines):
                return
            raise UnreadableEdit(
                text.start,
                "expected to know where the fence that opens here ends, found two lines for it, "
                f"{text.end + 1} and {i + 1}",
                LONGER_FENCE,
            )
        elif path_of_info(mark.info, doc.known):
            return
        else:
            i = fences.end(i, mark)
            if shown and not fences.at(i + 1):
                return
        i += 1


def _begins_edit(doc: Document, i: int) -> bool:
    """Return whether line `i` can only be behind the text."""
    line = doc.lines[i]
    if line.startswith((BEGIN_PATCH, GIT)) or is_file_end(line) or opening(line):
        return True
    if half_at(doc, i) or file_line(line):
        return True
    below = next_line(doc.lines, i) if doc.known.on_line(line) else len(doc.lines)
    return below < len(doc.lines) and bool(doc.fences.at(below) or opening(doc.lines[below]))
