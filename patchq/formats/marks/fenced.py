"""The text that stands in a fence, and where it ends.

A bare fence line of at least the opening's length closes.  Inside, a fence line with info opens a
nested fence, which a bare line closes first; a shorter one cannot be mistaken for the outer fence
and is text.  Nobody can tell a bare line that opens inside from the outer fence's end, so a text
that may hold fences is only read if no further line could have been that end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchq.formats.format import UnreadableEdit
from patchq.formats.marks.blocks import opening
from patchq.formats.marks.labels import file_line, half_label, is_file_end
from patchq.formats.marks.lines import BEGIN_PATCH, GIT, Fence, fence, joined, next_line
from patchq.formats.marks.paths import Known, path_line, path_of_info

LONGER_FENCE = (
    "put a text that holds fences into a longer one, as ```` (four backticks) for three; both of "
    "its lines need the same length"
)
_MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx")
_MARKDOWN_LANGUAGES = ("markdown", "md", "mdx")


@dataclass(frozen=True, slots=True)
class Fenced:
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


def fenced_at(lines: Sequence[str], start: int, mark: Fence) -> Fenced:
    """The text in the fence that opens with `mark` on line `start` (an index); raises
    `UnreadableEdit` if it is not closed."""
    nested = [mark]
    nests, closed_inner = False, -1
    for i in range(start + 1, len(lines)):
        line = fence(lines[i])
        if line is None:
            continue
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


def check_end(lines: Sequence[str], text: Fenced, path: str, known: Known) -> None:
    """Raise `UnreadableEdit` if another line may be the fence's end as well.

    In Markdown, and in a text that holds fences, that is every bare one; in another text the next
    fence line, if the text seems to go on behind the first end.
    """
    nests = text.nests or is_markdown(path, text.mark.info)
    behind = lines[text.end + 1] if text.end + 1 < len(lines) else ""
    if not nests and (not behind.strip() or fence(behind)):
        return
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
            if not nests or path_of_info(mark.info, known):
                return
        elif _begins_next(lines, i, known) and (
            i > text.end + 1 or not _may_be_inside(lines, i, nests)
        ):
            return


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


def _begins_next(lines: Sequence[str], i: int, known: Known) -> bool:
    """Whether line `i` can begin what follows the fenced text."""
    return bool(_begins_edit(lines, i) or file_line(lines[i]) or _is_heading(lines, i, known))


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
