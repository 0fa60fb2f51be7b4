"""Whole files: a file's text in a fence that names the file, or under a `FILE:` line.

    ```python:path/to/file.py          FILE: path/to/file.py
    all lines of the file              all lines of the file
    ```                                END FILE

Quoting is not writing: models put excerpts, usage and tracebacks under a path as well.  So `read`
takes only the forms that nobody quotes in, a colon in the info and `FILE:` in capitals;
`read_quoting` takes the others, for a response without any other edit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.formats.format import (
    Document,
    FenceOpening,
    Format,
    Opening,
    Piece,
    Sign,
    UnreadableEdit,
)
from patchq.formats.marks.blocks import is_suspect, opening
from patchq.formats.marks.lines import (
    BEGIN_PATCH,
    DIFF_ENDINGS,
    DIFF_LANGUAGES,
    GIT,
    Fence,
    OpenFences,
    fence,
    joined,
    line_above,
    next_line,
)
from patchq.formats.marks.parts import (
    Fenced,
    FileLine,
    change_line,
    check_end,
    fenced_at,
    file_line,
    half_label,
    is_file_end,
    is_markdown,
    path_behind,
)
from patchq.formats.marks.paths import as_meant, is_path, path_line, path_of_info, path_of_sentence
from patchq.model.ops import Write
from patchq.model.values import Edit

NAME = "whole_file"
INSTRUCTIONS = """\
Answer with the whole text of every file that is new or changes, each in a fence whose info names
the file behind a colon:

```python:path/to/file.py
all lines of the file
```

Where the text holds fences itself, use a longer one. Leave nothing out: what is not there is gone.
"""

_IN_INFO = "put the path into the info of the file's fence: ```python:path/to/file.py"
_SEND_AGAIN = "send the whole response again; if it was cut, send fewer files at once"
_STRONG = re.compile(r"[\w+#.-]*:[ \t]*\S")
_CITED = re.compile(r"\d+:\d+:|suggestion:|.*:\d+(?:-\d+)?\Z")
"""Infos with a colon that quote: lines of a file, or a review's suggestion for some."""
_CROWDED = re.compile(r"[\w+#.-]*:[ \t]*(\S+)[ \t]+\S")
_LISTED = re.compile(r"\s*[-*+>]\s")
_COMMENT = re.compile(r"\s*(?:#|//)[ \t]*([^\s#!/]\S*)\s*")
_FILE_NAME = re.compile(r"(?:.*/)?[^/]*[^/.]\.[A-Za-z][A-Za-z0-9]{0,9}")
_COMMANDS = ("bash", "sh", "shell", "console", "zsh", "powershell", "cmd", "bat", "text", "log")
_DIFF = re.compile(rf"{GIT}|--- (?:a/|/dev/null)|@@ .*@@")


@dataclass(frozen=True, slots=True)
class FileName:
    """What names the file of a fence: its path, the index of the first line that does, and
    whether the fence's info is one."""

    path: str
    top: int
    in_info: bool


def read(doc: Document, i: int) -> Piece | None:
    """The file that is written from line `i` (an index) on, in a form that always writes."""
    line = doc.lines[i]
    if label := file_line(line):
        return _labelled(doc, i, label)
    if is_file_end(line):
        raise UnreadableEdit(
            i,
            "expected a `FILE:` line before this end of a file",
            "send `FILE: path`, the file's lines without a fence, `END FILE`",
        )
    mark = fence(line)
    if mark is None or not is_named(mark) or _CITED.match(mark.info):
        return None
    path = path_of_info(mark.info, doc.known)
    if path is None:
        crowded = _CROWDED.match(mark.info)
        if crowded and is_path(crowded[1], doc.known):
            raise UnreadableEdit(
                i, "expected nothing behind the path in the fence's info", _IN_INFO
            )
        return None
    if begins_other(doc, i, path):
        return None
    return _fenced(doc, i, mark, _one_name(doc, i, [(i, path), *_path_above(doc, i)]))


def is_named(mark: Fence) -> bool:
    """Whether something stands behind a colon in a fence's info, as a file's name does."""
    return _STRONG.match(mark.info) is not None


def read_quoting(doc: Document, i: int) -> Piece | None:
    """The file that stands in the fence of line `i`, in a form that may also be an excerpt.

    Only for a response that holds no edit of another form.
    """
    mark = fence(doc.lines[i])
    if mark is None or mark.closing or (mark.info and is_named(mark)):
        return None
    above = _text_above(doc, i)
    bare = above is None and not mark.info and not _comments(doc, i)
    if bare or not doc.memory[_FencesBehind].opens(i):
        return None
    path = path_of_info(mark.info, doc.known)
    named = [(i, path)] if path else []
    written = path_line(doc.lines[above], doc.known) if above is not None else None
    if above is not None and written and not _LISTED.match(doc.lines[above]):
        named.append((above, written))
    if named:
        return _fenced(doc, i, mark, _one_name(doc, i, named), quoting=True)
    if above is not None:
        _check_sentence(doc, i, mark, written or path_of_sentence(doc.lines[above], doc.known))
    path = _commented(doc, i)
    return _fenced(doc, i, mark, FileName(path, i, in_info=False), quoting=True) if path else None


# ---------------------------------------------------------------- which file it is


def _text_above(doc: Document, i: int) -> int | None:
    """The line right above a fence, if it holds text and is no fence line."""
    above = line_above(doc.lines, i, doc.low)
    return None if above < doc.low or fence(doc.lines[above]) else above


def _path_above(doc: Document, i: int) -> list[tuple[int, str]]:
    """The line right above a fence and its path, if it is one and no item of a list."""
    above = _text_above(doc, i)
    if above is None or _LISTED.match(doc.lines[above]):
        return []
    path = path_line(doc.lines[above], doc.known)
    return [(above, path)] if path else []


def _one_name(doc: Document, i: int, named: Sequence[tuple[int, str]]) -> FileName:
    paths = list(dict.fromkeys(as_meant(path, doc.known) for _, path in named))
    if len(paths) > 1:
        raise UnreadableEdit(
            i,
            f"expected one path for the fence, found two: {paths[0]!r} and {paths[1]!r}",
            "name the file once",
        )
    in_info = any(at == i for at, _ in named)
    return FileName(paths[0], min(at for at, _ in named), in_info)


def _check_sentence(doc: Document, i: int, mark: Fence, path: str | None) -> None:
    """Refuse a fence under a sentence that names the file `path`: nobody can tell what it is.

    Commands and output stand under such sentences far more often than files.
    """
    if path and mark.info.lower() not in _COMMANDS:
        raise UnreadableEdit(
            i,
            f"the text in this fence may be {path!r}, or quote from it",
            _IN_INFO,
        )


def _commented(doc: Document, i: int) -> str | None:
    """The path in the comment that is the first line of the fence on line `i`."""
    match = _comments(doc, i)
    if match is None:
        return None
    path = as_meant(match[1], doc.known)
    if doc.known(path):
        raise UnreadableEdit(
            i,
            f"the text in this fence may be all of {path!r}, or quote from it: a comment on its "
            "first line replaces no file",
            _IN_INFO,
        )
    return path if is_path(path, doc.known) and _FILE_NAME.fullmatch(path) else None


def _comments(doc: Document, i: int) -> re.Match[str] | None:
    """The comment that stands alone on the line under line `i`."""
    return _COMMENT.fullmatch(doc.lines[i + 1]) if i + 1 < len(doc.lines) else None


class _FencesBehind:
    """The fences in the prose behind the last edit, as far as they were looked at."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.fences = OpenFences()
        self.end = 0
        """The first line (index) whose fence was not looked at."""

    def opens(self, i: int) -> bool:
        """Whether the fence line `i` opens a fence, seen from the last edit on."""
        if self.end < self.doc.low:
            self.fences, self.end = OpenFences(), self.doc.low
        for j in range(self.end, i + 1):
            if mark := fence(self.doc.lines[j]):
                self.fences.read(j, mark)
        self.end = max(self.end, i + 1)
        return self.fences.opened(i)


def _fenced(
    doc: Document, i: int, mark: Fence, name: FileName, *, quoting: bool = False
) -> Piece | None:
    text = file_in_fence(doc, i, mark, name)
    return _piece(name, i, text.end, text.text, quoting=quoting) if text else None


def _piece(name: FileName, start: int, end: int, text: str, *, quoting: bool = False) -> Piece:
    edit = Edit("", NAME, (start + 1, end + 1), name.path, Write(text, quoting))
    return Piece((edit,), end + 1, min(name.top, start))


# ---------------------------------------------------------------- FILE:


def _labelled(doc: Document, i: int, label: FileLine) -> Piece | None:
    lines = doc.lines
    below = next_line(lines, i)
    if below == len(lines):
        raise UnreadableEdit.cut(i, "the response ends here, where a file begins", _SEND_AGAIN)
    mark = fence(lines[below])
    fenced = mark is not None and not mark.closing
    if label.dressed and not fenced:
        return None
    path = path_behind(label, doc.known)
    if path is None:
        raise UnreadableEdit(
            i, "expected one path behind `FILE:`", "write `FILE: path`, and nothing else"
        )
    if begins_other(doc, i, path):
        return None
    if mark is None or mark.closing:
        return _unfenced(doc, i, path)
    inner = path_of_info(mark.info, doc.known)
    name = _one_name(doc, below, [(i, path)] + ([(below, inner)] if inner else []))
    text = file_in_fence(doc, below, mark, name)
    if text is None:
        return None
    end = next_line(lines, text.end)
    closed = end < len(lines) and is_file_end(lines[end])
    return _piece(name, i, end if closed else text.end, text.text)


def _unfenced(doc: Document, i: int, path: str) -> Piece | None:
    """The file whose lines stand under the `FILE:` line `i`, without a fence.

    Up to `END FILE` every line is the file's.  Where the next `FILE:` ends it, blank lines at the
    edges set the text off.
    """
    lines = doc.lines
    end, fences = i + 1, False
    while end < len(lines) and not is_file_end(lines[end]) and not file_line(lines[end]):
        half = half_label(lines, end)
        if half and half.sure:
            return None
        if is_marker(lines[end]):
            raise UnreadableEdit(
                end,
                f"{lines[end].strip()[:40]!r} stands in what should be the text of {path!r}",
                "put the text into a fence whose info names the file, or send blocks alone",
            )
        fences = fences or fence(lines[end]) is not None
        end += 1
    if end == len(lines):
        raise UnreadableEdit(
            i,
            "the file's text runs to the end of the response, so it may be cut",
            "put the text into a fence, or `END FILE` on the line behind it",
        )
    closed = is_file_end(lines[end])
    if fences and not (closed and is_markdown(path, "")):
        raise UnreadableEdit(
            i,
            "expected a fence right under `FILE:`, found text before it",
            "put nothing between `FILE: path` and the fence with the file's text",
        )
    name = FileName(path, i, in_info=False)
    if closed:
        return _piece(name, i, end, joined(lines[i + 1 : end]))
    start, last = next_line(lines, i), line_above(lines, end, i + 1)
    if last < start:
        raise UnreadableEdit(
            i,
            "expected the file's lines under `FILE:`, found the next file",
            "put the text into a fence; for an empty file, put `END FILE` on the next line",
        )
    return _piece(name, i, last, joined(lines[start : last + 1]))


# ---------------------------------------------------------------- what the fence holds


def file_in_fence(doc: Document, i: int, mark: Fence, name: FileName) -> Fenced | None:
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
    if opening(line) or line.lstrip().startswith(BEGIN_PATCH):
        return True
    if change_line(line):
        below = next_line(lines, below)
    half = half_label(lines, below) if below < len(lines) else None
    is_diff = not path.endswith(DIFF_ENDINGS) and _DIFF.match(line)
    return bool((half and half.sure) or is_diff)


def is_marker(line: str) -> bool:
    """Whether the line looks like a marker of SEARCH/REPLACE blocks, or begins a patch."""
    return is_suspect(line) or line.lstrip().startswith(BEGIN_PATCH)


def _says_diff(mark: Fence, path: str) -> bool:
    """Whether the fence's language is a diff's, and the file is none."""
    language = mark.info.partition(":")[0].split(" ")[0].lower()
    return language in DIFF_LANGUAGES and not path.endswith(DIFF_ENDINGS)


def _check_blocks(text: Fenced, name: FileName) -> None:
    """Raise `UnreadableEdit` if markers stand in the fence that need not be the file's own text.

    Only a fence whose info names the file may hold whole blocks.
    """
    opened = False
    for i, line in enumerate(text.lines, text.start + 1):
        if not is_marker(line):
            continue
        opened = opened or not line.lstrip().startswith((">", "+"))
        if not (opened and name.in_info):
            raise UnreadableEdit(
                i,
                f"{line.strip()[:40]!r} stands in what should be the text of {name.path!r}",
                "send blocks whole and alone, or put the path into the info of the file's fence",
            )


FORMAT = Format(
    NAME,
    INSTRUCTIONS,
    openings=(
        Opening(
            read, ("[#*_]", "FILE", "END FILE"), lambda line: file_line(line) or is_file_end(line)
        ),
    ),
    fences=(
        FenceOpening(read, is_named, turn=2),
        FenceOpening(read_quoting, quotes=True),
    ),
    signs=(Sign("a whole file", r"FILE: *\S"),),
)
