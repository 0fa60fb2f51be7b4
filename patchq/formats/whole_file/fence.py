"""A file's text in a fence, told from the edits of other forms that stand in the same place.

Paths stand over diffs and blocks as well, and a block that lost its first marker looks like a whole
file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchq.formats.document import Document
from patchq.formats.marks.blocks import is_suspect, opening
from patchq.formats.marks.fenced import Fenced, check_end, fenced_at
from patchq.formats.marks.fences import Fence, fence
from patchq.formats.marks.labels import change_line, half_label, next_line
from patchq.formats.marks.paths import path_line
from patchq.formats.unreadable import Unreadable

_DIFF_LANGUAGES = ("diff", "patch", "udiff", "git-diff")
_DIFF_ENDINGS = (".diff", ".patch", ".udiff", ".rej")
_DIFF = re.compile(r"diff --git |--- (?:a/|/dev/null)|@@ .*@@")
_PATCH = re.compile(r"\s*\*\*\* Begin Patch")


@dataclass(frozen=True, slots=True)
class Name:
    """What names the file of a fence: its path, the index of the first line that does, and
    whether the fence's info is one."""

    path: str
    top: int
    in_info: bool


def file_in_fence(doc: Document, i: int, mark: Fence, name: Name) -> Fenced | None:
    """The file in the fence that opens with `mark` on line `i`; None if an edit of another form
    begins there."""
    if _says_diff(mark, name.path) or begins_other(doc, i, name.path):
        return None
    text = fenced_at(doc.lines, i, mark)
    _check_blocks(text, name)
    check_end(doc.lines, text, name.path, doc.known)
    return text


def begins_other(doc: Document, i: int, path: str) -> bool:
    """Whether the first line with text behind line `i` begins an edit of another form."""
    lines, below = doc.lines, next_line(doc.lines, i)
    if below < len(lines) and (fence(lines[below]) or path_line(lines[below], doc.known) == path):
        below = next_line(lines, below)
    if below == len(lines):
        return False
    line = lines[below]
    if change_line(line):
        below = next_line(lines, below)
    half = half_label(lines, below) if below < len(lines) else None
    is_patch = not path.endswith(_DIFF_ENDINGS) and _DIFF.match(line)
    return bool((half and half.sure) or opening(line) or _PATCH.match(line) or is_patch)


def is_marker(line: str) -> bool:
    """Whether the line looks like a marker of SEARCH/REPLACE blocks, or begins a patch."""
    return is_suspect(line) or _PATCH.match(line) is not None


def _says_diff(mark: Fence, path: str) -> bool:
    """Whether the fence's language is a diff's, and the file is none."""
    language = mark.info.partition(":")[0].split(" ")[0].lower()
    return language in _DIFF_LANGUAGES and not path.endswith(_DIFF_ENDINGS)


def _check_blocks(text: Fenced, name: Name) -> None:
    """Raise `Unreadable` if markers stand in the fence that need not be the file's own text.

    Only a fence whose info names the file may hold whole blocks.
    """
    opened = False
    for i, line in enumerate(text.lines, text.start + 1):
        if not is_marker(line):
            continue
        opened = opened or not line.lstrip().startswith((">", "+"))
        if not (opened and name.in_info):
            raise Unreadable(
                i,
                f"{line.strip()[:40]!r} stands in what should be the text of {name.path!r}",
                "send blocks whole and alone, or put the path into the info of the file's fence",
            )
