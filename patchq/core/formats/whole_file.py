"""Whole files: a file's text in a fence that names the file, or under a `FILE:` line.

    ```python:path/to/file.py          FILE: path/to/file.py
    all lines of the file              all lines of the file
    ```                                END FILE

Quoting is not writing: models put excerpts, usage and tracebacks under a path as well.  So `read`
takes only the forms that nobody quotes in, a colon in the info and `FILE:` in capitals.
`read_quoting` takes the others as quotations; `decided` makes files of them in a response without
any other edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.core.formats.format import (
    Document,
    FenceOpening,
    Format,
    Inside,
    Opening,
    Piece,
    Sign,
    UnreadableEdit,
)
from patchq.core.formats.marks.blocks import is_suspect, may_mark, opening
from patchq.core.formats.marks.lines import (
    BEGIN_PATCH,
    DIFF_ENDINGS,
    DIFF_LANGUAGES,
    GIT,
    Fence,
    OpenFences,
    fence,
    fences_from,
    joined,
    line_above,
    next_line,
)
from patchq.core.formats.marks.parts import (
    Fenced,
    FileLine,
    change_line,
    check_end,
    fenced_at,
    file_line,
    half_label,
    is_document,
    is_file_end,
    is_markdown,
    path_behind,
)
from patchq.core.formats.marks.paths import path_line, path_of_info
from patchq.core.formats.marks.ties import (
    Tie,
    in_info,
    is_named,
    language_of,
    named_by,
    one_tie,
    tie_by_name,
    tie_of,
)
from patchq.core.model.ops import DeleteFile, Rename, Write
from patchq.core.model.values import Edit, Quotation
from patchq.core.text.patterns import Pattern
from patchq.core.text.seen import OUTPUTS, SHELLS, fits, is_session, seen

_LOGS = OUTPUTS - {"text", "txt", "plaintext"}
"""The languages of what programs print; plain text may be a file as well."""
NAME = "whole_file"
INSTRUCTIONS = """\
Answer with the whole text of every file that is new or changes, each in a fence whose info names
the file behind a colon:

```python:path/to/file.py
all lines of the file
```

Where the text holds fences itself, use a longer one. Leave nothing out: what is not there is gone.
"""

_SEND_AGAIN = "send the whole response again; if it was cut, send fewer files at once"
_DIFF = Pattern(rf"{GIT}|--- (?:a/|/dev/null)|@@ .*@@")


def read(doc: Document, i: int) -> Piece | None:
    """The file that is written from line `i` (an index) on, in a form that always writes."""
    if doc.look is None:
        return None
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
    tie = tie_by_name(doc, i, mark) if mark and is_named(mark) else None
    return _fenced(doc, i, mark, tie) if mark and tie else None


def read_quoting(doc: Document, i: int) -> Piece | None:
    """What stands in the fence of line `i` under a path, in a form that quotes as often as it
    writes: a file under a path line where the front matter says so, else a quotation."""
    mark = fence(doc.lines[i])
    if doc.look is None or mark is None:
        return None
    tie = tie_of(doc, i, mark)
    if tie is None or _holds_other(doc, i, tie) or not doc.memory[_FencesBehind].opens(i):
        return None
    if doc.whole_files and tie.kind == "path" and not tie.in_info and _may_replace(mark):
        return _fenced(doc, i, mark, replace(tie, kind="name"))
    if _is_said_of(tie, mark) and doc.known(tie.path):
        return None
    if _is_shown_inside(doc, tie):
        tie = replace(tie, kind="mention")
    return _fenced(doc, i, mark, tie)


def _may_replace(mark: Fence) -> bool:
    """Whether the front matter's `whole_files` speaks of such a fence."""
    return language_of(mark) not in SHELLS | _LOGS | set(DIFF_LANGUAGES)


def _is_shown_inside(doc: Document, tie: Tie) -> bool:
    """Whether the fence stands in another one that holds prose as well, or is not all there is."""
    outer = doc.open_fences.outermost
    if outer is None or outer >= tie.top:
        return False
    above = line_above(doc.lines, tie.top, 0)
    return next_line(doc.lines, -1) != outer or fence(doc.lines[above]) is None


def _is_said_of(tie: Tie, mark: Fence) -> bool:
    """Whether the fence holds what people run, or see, of the file that a sentence names."""
    return tie.kind in ("sentence", "mention") and not fits(language_of(mark), tie.path)


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
        for j, mark in fences_from(self.doc.lines, self.end, i + 1):
            self.fences.read(j, mark)
        self.end = max(self.end, i + 1)
        return self.fences.opened(i)


def _fenced(doc: Document, i: int, mark: Fence, tie: Tie) -> Piece | None:
    text = file_in_fence(doc, i, mark, tie)
    if text is None:
        return None
    if tie.kind == "name":
        return _piece(tie.path, tie.top, i, text.end, text.text)
    language = language_of(mark)
    known = doc.known(tie.path)
    writes = tie.kind in ("path", "sentence") and (known or _may_be_new(text.text, language, tie))
    if tie.kind == "comment":
        writes = not known and "/" in tie.path
    quotation = Quotation((i + 1, text.end + 1), tie.path, text.text, tie.kind, language, writes)
    return Piece((), text.end + 1, tie.top, quotation=quotation)


def _may_be_new(text: str, language: str, tie: Tie) -> bool:
    """Whether the text may be that of a new file, and not what people run or see."""
    if tie.kind == "sentence" and language in _LOGS:
        return False
    return (
        fits(language, tie.path)
        and (fits("text", tie.path) or not seen(text))
        and not (is_session(text, tie.path))
    )


def _piece(path: str, top: int, start: int, end: int, text: str) -> Piece:
    edit = Edit("", NAME, (start + 1, end + 1), path, Write(text))
    return Piece((edit,), end + 1, min(top, start))


# ---------------------------------------------------------------- what becomes of quotations


def decided(
    edits: Sequence[Edit], quotations: Sequence[Quotation], fences: int
) -> tuple[list[Edit], list[Quotation]]:
    """The edits, with the files that quotations are where there are no others; and what remains to
    be a quotation.  `fences` says how many there are in the response."""
    _check_twice(edits)
    if edits:
        made = {edit.path for edit in edits}
        return list(edits), [one for one in quotations if not (_is_shown(one) and one.path in made)]
    files = [one for one in quotations if one.writes and (one.tie != "comment" or fences == 1)]
    written = [Edit("", NAME, one.at, one.path, Write(one.text, quoting=True)) for one in files]
    rest = [one for one in quotations if one not in files]
    made = {one.path for one in files}
    doubtful = [one for one in rest if not (_is_shown(one) and (one.path in made or not files))]
    if doubtful and not files:
        raise _doubt(doubtful[0])
    return written, doubtful


def _is_shown(quotation: Quotation) -> bool:
    """Whether a sentence names the file, and the fence is none that the file may hold."""
    said = quotation.tie in ("sentence", "mention")
    return said and not fits(quotation.language, quotation.path)


def _doubt(quotation: Quotation) -> UnreadableEdit:
    """Why a response with nothing but quotations is refused."""
    what = seen(quotation.text, quotation.language)
    return UnreadableEdit(
        quotation.at[0] - 1,
        f"the fence that names {quotation.path!r} holds {what}, not the file"
        if what
        else f"the text in this fence may be {quotation.path!r}, or quote from it",
        in_info(quotation.path),
    )


def _check_twice(edits: Sequence[Edit]) -> None:
    """Refuse a file that is written whole, and edited otherwise as well."""
    written, whole = [edit for edit in edits if edit.format == NAME], DeleteFile | Rename
    if not written:
        return
    others = {e.path: e for e in edits if e.format != NAME and not isinstance(e.op, whole)}
    for edit in written:
        if edit.path in others:
            raise UnreadableEdit(
                edit.at[0] - 1,
                f"{edit.path!r} is written as a whole here, and edited on line "
                f"{others[edit.path].at[0]}",
                "say once what shall become of the file",
            )


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
    tie = one_tie(doc, below, [*named_by("name", i, path), *named_by("path", below, inner)])
    text = file_in_fence(doc, below, mark, tie)
    if text is None:
        return None
    end = next_line(lines, text.end)
    closed = end < len(lines) and is_file_end(lines[end])
    return _piece(tie.path, i, i, end if closed else text.end, text.text)


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
    if closed:
        return _piece(path, i, i, end, joined(lines[i + 1 : end]))
    start, last = next_line(lines, i), line_above(lines, end, i + 1)
    if last < start:
        raise UnreadableEdit(
            i,
            "expected the file's lines under `FILE:`, found the next file",
            "put the text into a fence; for an empty file, put `END FILE` on the next line",
        )
    return _piece(path, i, i, last, joined(lines[start : last + 1]))


# ---------------------------------------------------------------- what the fence holds


def _opens_twice(lines: Sequence[str], i: int, mark: Fence) -> bool:
    """Whether the fence's first line stands there twice, as models write at times, and one line
    ends it: then its edits stand in it alone, and in no further one."""
    again = fence(lines[i + 1]) if i + 1 < len(lines) else None
    if again is None or again.closing or (again.kind, again.length) != (mark.kind, mark.length):
        return False
    ends = (k for k in range(i + 2, len(lines)) if (m := fence(lines[k])) and mark.closed_by(m))
    end = next(ends, len(lines))
    below = next_line(lines, end)
    after = fence(lines[below]) if below < len(lines) else None
    return after is None or not mark.closed_by(after)


def file_in_fence(doc: Document, i: int, mark: Fence, tie: Tie) -> Fenced | None:
    """The file in the fence that opens with `mark` on line `i`; None if it holds edits.

    A text that shows edits is the file's where the fence's info names the file, or the file is a
    document; anywhere else nobody can tell whether they are meant.
    """
    documents = tie.in_info or is_document(tie.path)
    if _says_diff(mark, tie.path) or _holds_other(doc, i, tie):
        return None
    inside = doc.look(doc, i, mark, tie.path) if doc.look else Inside(None, None, False, True)
    if inside.edits is not None and (not inside.text or tie.kind in ("mention", "comment")):
        return None
    if inside.edits is not None and not documents:
        raise _edits_beside(inside.edits, "edits and other text", tie)
    if inside.nested and not inside.text:
        if _opens_twice(doc.lines, i, mark):
            return None
        raise _edits_beside(i, "nothing but a further fence with edits", tie)
    if tie.other:
        raise UnreadableEdit(
            i,
            f"expected one path for the fence, found two: {tie.path!r} and {tie.other!r}",
            "name the file once",
        )
    if tie.kind != "name" and next_line(doc.lines, i) == len(doc.lines):
        return None  # the response is cut here
    text = fenced_at(doc.lines, i, mark)
    _check_blocks(text, tie)
    check_end(doc.lines, text, tie.path, doc.known)
    return text


def _edits_beside(i: int, what: str, tie: Tie) -> UnreadableEdit:
    return UnreadableEdit(
        i,
        f"the fence that names {tie.path!r} holds {what}: they may be meant, or be the file's text",
        f"send edits alone in their fence; to write a file that shows edits, {in_info(tie.path)}",
    )


def _holds_other(doc: Document, i: int, tie: Tie) -> bool:
    """Whether the fence of line `i` begins with an edit of another form, and its file is none that
    may show edits."""
    return not (tie.in_info or is_document(tie.path)) and begins_other(doc, i, tie.path)


def begins_other(doc: Document, i: int, path: str) -> bool:
    """Whether the first line with text behind line `i` begins an edit of another form."""
    lines, below = doc.lines, next_line(doc.lines, i)
    line = lines[below] if below < len(lines) else ""
    if fence(line) or (path in line and path_line(line, doc.known) == path):
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


def _check_blocks(text: Fenced, tie: Tie) -> None:
    """Raise `UnreadableEdit` if markers stand in the fence that need not be the file's own text.

    Only a fence whose info names the file, and a document, may hold whole blocks.
    """
    if not may_mark(text.text):
        return
    may_show = tie.in_info or is_document(tie.path)
    opened = False
    for i, line in enumerate(text.lines, text.start + 1):
        if not is_marker(line):
            continue
        opened = opened or not line.lstrip().startswith((">", "+"))
        if not (opened and may_show):
            raise UnreadableEdit(
                i,
                f"{line.strip()[:40]!r} stands in what should be the text of {tie.path!r}",
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
        FenceOpening(read_quoting, lambda mark: not (mark.closing or is_named(mark)), turn=3),
    ),
    signs=(Sign("a whole file", r"FILE: *\S"),),
)
