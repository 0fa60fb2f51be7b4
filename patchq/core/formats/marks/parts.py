"""The parts of a response: the lines that label them, as `FILE:`, `END FILE`, `CHANGE`, `FIND:` and
`REPLACE WITH:`, and the text that stands in a fence under them.

Case, spacing and dressing of the labels' words are free, so ordinary prose comes close to them:
`sure` says whether a line can only be a label.

A bare fence line of at least the opening's length closes.  Inside, a fence line with info opens a
nested fence, which a bare line closes first; a shorter one cannot be mistaken for the outer fence
and is text.  Nobody can tell a bare line that opens inside from the outer fence's end, so a text
that may hold fences is only read if no further line could have been that end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from patchq.core.formats.format import UnreadableEdit
from patchq.core.formats.marks.blocks import opening
from patchq.core.formats.marks.lines import (
    BEGIN_PATCH,
    GIT,
    Fence,
    fence,
    fences_from,
    joined,
    next_line,
)
from patchq.core.formats.marks.paths import Known, as_meant, path_line, path_of_info, undress

_FILE = re.compile(
    r" {0,3}(?P<dress>(?:#{1,6}[ \t]+)?(?P<bold>\*\*|__)?)FILE"
    r"(?:[ \t]*:|(?P=bold)[ \t]*:)(?P<rest>.*)",
    re.DOTALL,
)
_FILE_END = re.compile(r" {0,3}(?:#{1,6}[ \t]+)?(?:\*\*)?END FILE(?:[ \t]*:.*|\*\*)?[ \t\r]*")
_NOTED = re.compile(r"(.+)[ \t]\(([^()]*)\)", re.DOTALL)
_NOTE = re.compile(
    r"(?:(?:a|the|new|newly|file|full|whole|complete|entire|existing|create[ds]?|add(?:ed|s)?|"
    r"modif(?:y|ied)|update[ds]?|change[ds]?|edit(?:ed|s)?|replace[ds]?|rewritten)\b[ \t]*)+",
    re.IGNORECASE,
)
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
_CROWDED = re.compile(
    r" {0,3}(?:[-*+>][ \t]+|#{1,6}[ \t]*)?[*_]{0,2}"
    r"(?:(?P<find>FIND)|REPLACE(?:[ \t_-]*WITH)?)[*_]{0,2}[ \t]*(?:\(|:[*_]{0,2}[ \t]*\S)"
)
_MAY_LABEL = re.compile(r"[\s\d.)#*_`>+-]*+[CcFfRr]")
_LONGEST_HALF = 40
_INDENTED = ("    ", "\t")

LONGER_FENCE = (
    "put a text that holds fences into a longer one, as ```` (four backticks) for three; both of "
    "its lines need the same length"
)
_MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx")
_PLAIN_ENDINGS = (*_MARKDOWN_ENDINGS, ".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org")
_MARKDOWN_LANGUAGES = ("markdown", "md", "mdx")


# ---------------------------------------------------------------- labels


def is_file_end(line: str) -> bool:
    """Whether a line is `END FILE`."""
    return _FILE_END.fullmatch(line) is not None


class FileLine(Struct, frozen=True):
    """A `FILE:` line in capitals; `dressed` as a heading or in bold."""

    rest: str
    dressed: bool


class ChangeLine(Struct, frozen=True):
    """A `CHANGE` line; `shouted`: in capitals."""

    description: str
    shouted: bool


class HalfLabel(Struct, frozen=True):
    """The label of a block's half; what is not `sure` may be prose."""

    finds: bool
    sure: bool


def file_line(line: str) -> FileLine | None:
    """The line as `FILE: path`, or None."""
    match = _FILE.match(line)
    return match and FileLine(_rest(match), dressed=bool(match["dress"]))


def path_behind(label: FileLine, known: Known) -> str | None:
    """The one path that the rest of a `FILE:` line is; None if there is none, or more than it."""
    rest = label.rest
    if not known(rest):
        rest = undress(rest)[0]
        if (noted := _NOTED.fullmatch(rest)) and not known(rest):  # `path (new file)`
            rest = undress(noted[1])[0] if _NOTE.fullmatch(noted[2]) else ""
    return as_meant(rest, known) or None


def change_line(line: str) -> ChangeLine | None:
    """The line as `CHANGE 1: description`, or None."""
    match = _CHANGE.match(line.rstrip())
    return match and ChangeLine(_rest(match), shouted=match["word"].isupper())


def _rest(match: re.Match[str]) -> str:
    """What stands behind a label, without the emphasis that ends there."""
    bold = match["bold"] or ""
    return match["rest"].strip().removeprefix(bold).removesuffix(bold).strip()


def half_label(lines: Sequence[str], index: int) -> HalfLabel | None:
    """The line at `index` as the label of a half, alone on its line, or None.

    Without its colon it has to stand over a fence, and in capitals, bold or as a heading; without
    a capital, over a fence (`find:` is also a key in YAML).
    """
    match = _half(lines[index])
    if match is None:
        return None
    text, core = lines[index].strip(), match.string
    shouted = core.isupper()
    fenced = _stands_over_fence(lines, index)
    if not fenced and (core.islower() or not match["colon"]):
        return None
    if not match["colon"] and not shouted and core == text:
        return None
    return HalfLabel(finds=bool(match["find"]), sure=fenced or shouted)


@lru_cache(256)
def _dressed_half(text: str) -> re.Match[str] | None:
    core = text.lstrip("#").replace("*", "").replace("__", "").replace("`", "").strip()
    return _HALF.fullmatch(core)


def _half(line: str) -> re.Match[str] | None:
    """The label of a half that the line is but for its dressing, by its text alone."""
    text = line.strip()
    short = 0 < len(text) <= _LONGEST_HALF and not line.startswith(_INDENTED)
    return _dressed_half(text) if short else None


def may_label(line: str) -> bool:
    """Whether the line may be the label of a change or of a half, by its text alone."""
    return _MAY_LABEL.match(line) is not None and bool(
        _half(line) or change_line(line) or _CROWDED.match(line)
    )


def is_crowded_label(lines: Sequence[str], index: int) -> bool:
    """Whether text stands on the line behind what is a label otherwise: in capitals, over a fence
    or over the label of the other half."""
    match = _CROWDED.match(lines[index])
    if match is None:
        return False
    below = next_line(lines, index)
    if below == len(lines) or not match["find"]:
        return _stands_over_fence(lines, index)
    other = _CROWDED.match(lines[below])
    half = half_label(lines, below)
    pairs = bool((other and not other["find"]) or (half and not half.finds))
    return pairs or _stands_over_fence(lines, index)


def _stands_over_fence(lines: Sequence[str], index: int) -> bool:
    below = next_line(lines, index)
    mark = fence(lines[below]) if below < len(lines) else None
    return mark is not None and not mark.closing


# ---------------------------------------------------------------- texts in fences


class Fenced(Struct, frozen=True):
    """Line indices of a fence's two lines, and the lines between; `nests` says whether some of
    those are fence lines themselves."""

    start: int
    end: int
    mark: Fence
    lines: tuple[str, ...]
    nests: bool

    @property
    def text(self) -> str:
        return joined(self.lines)


def is_markdown(path: str, info: str) -> bool:
    """Whether the text is Markdown, by its path or by its fence's info."""
    language = info.partition(":")[0].split(" ")[0].lower()
    return path.lower().endswith(_MARKDOWN_ENDINGS) or language in _MARKDOWN_LANGUAGES


def is_document(path: str) -> bool:
    """Whether the file is Markdown or plain text, which may show edits."""
    name = path.rpartition("/")[2]
    return name.lower().endswith(_PLAIN_ENDINGS) or ("." not in name and name.isupper())


def fenced_at(lines: Sequence[str], start: int, mark: Fence) -> Fenced:
    """The text in the fence that opens with `mark` on line `start` (an index); raises
    `UnreadableEdit` if it is not closed."""
    nested = [mark]
    nests, closed_inner = False, -1
    for i, line in fences_from(lines, start + 1):
        if nested[-1].closed_by(line):
            nested.pop()
            if not nested:
                return Fenced(start, i, mark, tuple(lines[start + 1 : i]), nests)
            closed_inner = i
        elif line.info and line.kind == mark.kind and line.length >= nested[-1].length:
            nested.append(line)
        nests = nests or not line.kind.isalpha()
    if closed_inner >= 0 and next_line(lines, closed_inner) == len(lines):
        raise UnreadableEdit(
            start,
            "the fence that opens here is not closed: the last fence line closes one inside of it",
            LONGER_FENCE,
        )
    raise UnreadableEdit.cut(
        start, "the fence that opens here is not closed before the response ends"
    )


def end_of_fence(lines: Sequence[str], start: int, mark: Fence) -> int:
    """The index of the first line that may end the fence of line `start`; the lines' number if
    there is none."""
    depth = 1
    for i, line in fences_from(lines, start + 1):
        if mark.closed_by(line):
            depth -= 1
            if not depth:
                return i
        elif line.info and line.kind == mark.kind and line.length >= mark.length:
            depth += 1
    return len(lines)


def check_end(lines: Sequence[str], text: Fenced, path: str, known: Known) -> None:
    """Raise `UnreadableEdit` if another line may be the fence's end as well.

    In Markdown, and in a text that holds fences, that is every bare one; in another text the next
    fence line, if the text seems to go on behind the first end.
    """
    nests = text.nests or is_markdown(path, text.mark.info)
    behind = lines[text.end + 1] if text.end + 1 < len(lines) else ""
    if not nests and (not behind.strip() or fence(behind)):
        return
    shown = False  # what stands right under a fence line of a document may be shown in it
    for i in range(text.end + 1, len(lines)):
        if mark := fence(lines[i]):
            if text.mark.closed_by(mark):
                if _closes_wrapper(lines, i, mark, text):
                    return
                raise UnreadableEdit(
                    text.start,
                    "expected to know where the fence that opens here ends, found two lines for "
                    f"it, {text.end + 1} and {i + 1}",
                    LONGER_FENCE,
                )
            below = end_of_fence(lines, i, mark) + 1
            goes_on = below < len(lines) and fence(lines[below])
            if not nests or path_of_info(mark.info, known) or (shown and not goes_on):
                return
            shown = shown and bool(goes_on)
        elif _begins_edit(lines, i) or file_line(lines[i]) or _is_heading(lines, i, known):
            right_under = i == text.end + 1
            shown = shown or (right_under and nests and not is_file_end(lines[i]))
            if not shown and not (right_under and _may_be_inside(lines, i, nests)):
                return  # what follows the text begins here


def _closes_wrapper(lines: Sequence[str], i: int, mark: Fence, text: Fenced) -> bool:
    """Whether the response's last line, `i`, ends a longer fence that its first line opens."""
    first = next_line(lines, -1)
    if first >= text.start or next_line(lines, i) < len(lines):
        return False
    outer = fence(lines[first])
    return (
        outer is not None
        and outer.closed_by(mark)
        and outer.length == mark.length > text.mark.length
    )


def _begins_edit(lines: Sequence[str], i: int) -> bool:
    """Whether line `i` can stand nowhere but behind the text."""
    line, half = lines[i], half_label(lines, i)
    marked = line.startswith((BEGIN_PATCH, GIT)) or is_file_end(line) or opening(line)
    return bool(marked or (half and half.sure))


def _may_be_inside(lines: Sequence[str], i: int, nests: bool) -> bool:
    """Whether line `i`, right under a fence line, may be the first line of a fence in the text: a
    path or `FILE:`, but for one over a fence where the text holds none."""
    if _begins_edit(lines, i):
        return False
    below = next_line(lines, i)
    labels = file_line(lines[i]) and below < len(lines) and fence(lines[below])
    return nests or not labels


def _is_heading(lines: Sequence[str], i: int, known: Known) -> bool:
    """Whether line `i` is a path with an edit under it."""
    below = next_line(lines, i) if path_line(lines[i], known) else len(lines)
    return below < len(lines) and bool(fence(lines[below]) or opening(lines[below]))
